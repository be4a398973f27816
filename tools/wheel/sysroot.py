#!/usr/bin/python3
"""tools/wheel/sysroot.py FOLDER: makes FOLDER, with which wheels for other distributions are compiled and linked.

It has the C library of an old distribution and Debian 12's packages of everything else (parts.py), for the compiler of Debian 12:
cmake -DCMAKE_TOOLCHAIN_FILE=FOLDER/toolchain.cmake. It also has what the wheel says of its parts: FOLDER/parts.json and
FOLDER/licenses. A FOLDER that this script completed stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import parts

HERE = pathlib.Path(__file__).resolve().parent
TRIPLET = "x86_64-linux-gnu"

# Of glibc 2.30. Without them, libstdc++'s headers wait by the system's clock.
NEWER_FUNCTIONS = r"^#define (_GLIBCXX_USE_PTHREAD_(?:COND_CLOCKWAIT|MUTEX_CLOCKLOCK|RWLOCK_CLOCKLOCK)) 1$"


def own_hash() -> str:
    """Of what decides what the folder has."""
    files = sorted(path for path in HERE.iterdir() if path.name in ("parts.py", "sysroot.py", "toolchain.cmake", "newer_c_library.c"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def output(*words: str | os.PathLike[str]) -> str:
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def fetch(name: str, folder: pathlib.Path) -> pathlib.Path:
    """The file of parts.FILES in the folder. Ends the program if it is another one than then."""
    file = parts.FILES[name]
    path = folder / os.path.basename(file.url)
    with urllib.request.urlopen(file.url) as answer, open(path, "wb") as copy:
        shutil.copyfileobj(answer, copy)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != file.sha256:
        sys.exit(f"tools/wheel/sysroot.py: {file.url} has the SHA-256 {found}, not {file.sha256} as in parts.py")
    return path


def fetch_all(folder: pathlib.Path) -> tuple[list[pathlib.Path], pathlib.Path]:
    """The packages, and the source of mimalloc."""
    source = fetch("mimalloc", folder)
    for name in parts.FILES:
        if name != "mimalloc":
            fetch(name, folder)
    names = [part.package for part in parts.PARTS if part.package not in parts.FILES] + parts.ONLY_FOR_LINKING
    subprocess.run(["apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", *names], check=True, cwd=folder, stdout=sys.stderr)
    return sorted(folder.glob("*.deb")), source


def unpack(packages: list[pathlib.Path], root: pathlib.Path) -> None:
    for package in packages:
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    # A link to /lib/... is one to this machine's.
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            if os.path.islink(path) and os.readlink(path).startswith("/"):
                target = os.path.relpath(str(root) + os.readlink(path), folder)
                os.unlink(path)
                os.symlink(target, path)


def adapt_to_older_c_library(root: pathlib.Path, work: pathlib.Path) -> None:
    [config] = root.glob(f"usr/include/{TRIPLET}/c++/*/bits/c++config.h")
    text, count = re.subn(NEWER_FUNCTIONS, r"/* no \1 */", config.read_text(), flags=re.M)
    if count == 0:
        sys.exit(f"tools/wheel/sysroot.py: {config} defines none of the functions of glibc 2.30")
    config.write_text(text)
    compiled = work / "newer_c_library.o"
    subprocess.run(["gcc-12", f"--sysroot={root}", "-O2", "-fPIC", "-c", HERE / "newer_c_library.c", "-o", compiled], check=True)
    subprocess.run(["ar", "r", root / f"usr/lib/{TRIPLET}/libc_nonshared.a", compiled], check=True, stderr=subprocess.DEVNULL)


def build_mimalloc(source: pathlib.Path, root: pathlib.Path, work: pathlib.Path) -> None:
    """mimalloc's static library, and its license where packages have theirs."""
    subprocess.run(["tar", "--extract", "--file", source, "--directory", work], check=True)
    [folder] = work.glob("mimalloc-*/")
    build = work / "mimalloc"
    subprocess.run(["cmake", "-G", "Ninja", "-S", folder, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={root}/toolchain.cmake",
                    "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={root}/usr", f"-DCMAKE_INSTALL_LIBDIR=lib/{TRIPLET}",
                    "-DMI_BUILD_SHARED=OFF", "-DMI_BUILD_OBJECT=OFF", "-DMI_BUILD_TESTS=OFF", "-DMI_INSTALL_TOPLEVEL=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "install"], check=True, stdout=subprocess.DEVNULL)
    # core/heap/heap.cpp has operators of its own, which then win.
    subprocess.run(["objcopy", "--wildcard", "--weaken-symbol=_Znw*", "--weaken-symbol=_Zna*", "--weaken-symbol=_Zdl*", "--weaken-symbol=_Zda*",
                    root / f"usr/lib/{TRIPLET}/libmimalloc.a"], check=True)
    document = root / "usr/share/doc/mimalloc"
    document.mkdir()
    shutil.copy(folder / "LICENSE", document / "copyright")


def describe(packages: list[pathlib.Path], source: pathlib.Path, root: pathlib.Path) -> None:
    """parts.json: each part with the version and the hash of what was fetched. licenses/: the texts of those in the wheel."""
    fetched = {"mimalloc": (source, re.search(r"_([^_]+?)\.orig", source.name)[1])}
    for package in packages:
        name, version = output("dpkg-deb", "--show", "--showformat=${Package} ${Version}", package).split()
        fetched[name] = (package, version)
    (root / "licenses").mkdir()
    rows = []
    for part in parts.PARTS:
        file, version = fetched[part.package]
        of_ubuntu = parts.FILES.get(part.package, parts.File("", "")).url.startswith(parts._UBUNTU)
        rows.append({**part._asdict(), "version": version, "distribution": "ubuntu" if of_ubuntu else "debian",
                     "sha256": hashlib.sha256(file.read_bytes()).hexdigest()})
        if part.how == "linked":
            shutil.copy(root / "usr/share/doc" / part.package / "copyright", root / "licenses" / f"{part.package}.txt")
    (root / "parts.json").write_text(json.dumps(rows, indent=1) + "\n")
    (root / "made_by").write_text(own_hash())


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__.splitlines()[0])
    root = pathlib.Path(sys.argv[1]).absolute()
    made_by = root / "made_by"
    if made_by.exists() and made_by.read_text() == own_hash():
        return
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        packages, source = fetch_all(work)
        unpack(packages, root)
        adapt_to_older_c_library(root, work)
        shutil.copy(HERE / "toolchain.cmake", root)
        build_mimalloc(source, root, work)
        describe(packages, source, root)  # the last step: what is interrupted begins again


if __name__ == "__main__":
    main()
