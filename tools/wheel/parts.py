"""What a wheel is made of besides the project's own code: one line for each part. sysroot.py fetches it, bill_of_materials.py lists it."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    name: str  # as its makers write it
    package: str  # of Debian 12, or the name of a file in FILES
    license: str  # SPDX expression, as in the package's copyright file
    how: str  # "linked": in the wheel; "loaded": looked for on the user's machine when it is needed
    cmake: str  # what tools/cmake/MetaprofPackages.cmake calls it


class File(NamedTuple):
    url: str
    sha256: str


PARTS = [
    Part("fmt", "libfmt-dev", "MIT", "linked", "fmt"),
    Part("JSON for Modern C++", "nlohmann-json3-dev", "MIT", "linked", "nlohmann_json"),
    Part("CLI11", "libcli11-dev", "BSD-3-Clause", "linked", "CLI11"),
    Part("zlib", "zlib1g-dev", "Zlib", "linked", "ZLIB"),
    Part("minizip", "libminizip-dev", "Zlib", "linked", "minizip::minizip"),
    Part("libdeflate", "libdeflate-dev", "MIT", "linked", "libdeflate::deflate"),
    Part("mimalloc", "mimalloc", "MIT", "linked", "mimalloc"),
    Part("libstdc++", "libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1", "linked", ""),
    Part("libgcc", "libgcc-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1", "linked", ""),
    # Code that starts a program, and libc_nonshared.a.
    Part("GNU C Library", "libc6-dev", "LGPL-2.1-or-later", "linked", "Threads"),
    Part("Graphviz", "libgraphviz-dev", "EPL-1.0", "loaded", "graphviz::gvc"),
    Part("CBC", "coinor-libcbc-dev", "EPL-1.0", "loaded", "cbc::cbc"),
]

# What CMake looks for and no wheel has: tests need it.
ONLY_FOR_TESTS = ["GTest", "benchmark", "Python3", "libtorch::cpu"]

# Needed for linking, or for the names of libraries that are loaded; nothing of it comes into the wheel.
ONLY_FOR_LINKING = ["libfmt9", "libgvc6", "libcgraph6", "libcdt5", "coinor-libcbc3", "coinor-libcoinutils-dev", "gcc-12-base"]

# The C library of Ubuntu 18.04. A program that is linked with it runs with every later glibc, and 2.27 is older than the 2.28
# of RHEL 8, which is the oldest that the tag manylinux_2_28 names. Debian 12 has no source of mimalloc's static library.
_UBUNTU = "http://archive.ubuntu.com/ubuntu/pool/main/"
FILES = {
    "libc6": File(_UBUNTU + "g/glibc/libc6_2.27-3ubuntu1_amd64.deb",
                  "1e1eb86fd646aa68f7144ec692b837b6b352d215880c6a2d0c92c19d36938427"),
    "libc6-dev": File(_UBUNTU + "g/glibc/libc6-dev_2.27-3ubuntu1_amd64.deb",
                      "e426c70a940a7d0c5c95823a5fd01f26bd8bcb08d109df2f8c96c439da8dc440"),
    "linux-libc-dev": File(_UBUNTU + "l/linux/linux-libc-dev_4.15.0-20.21_amd64.deb",
                           "4a73fc5ea2d0284e9c9c84cba68cbe5880505afbae0a3201c65c336daf8f8239"),
    "libgcc1": File(_UBUNTU + "g/gcc-8/libgcc1_8-20180414-1ubuntu2_amd64.deb",
                    "c5a6df527fdfe0da45ff0538414535a04a6753e93a9f5902689cf1a73265423b"),
    "mimalloc": File("http://deb.debian.org/debian/pool/main/m/mimalloc/mimalloc_2.0.9+ds.orig.tar.xz",
                     "cbc9d207ff105ad1f0cb739c378076143a6452b8d0624309cea0abfb040e972b"),
}
