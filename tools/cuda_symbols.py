#!/usr/bin/env python3
"""Writes the names of the functions in CUDA's libraries: what capture/emulator/symbols holds, a file per soname.

usage: cuda_symbols.py WHEEL_OR_FOLDER... [--out capture/emulator/symbols]

Reads NVIDIA's public wheels (`pip download --no-deps nvidia-cublas-cu12==12.4.5.8 nvidia-cublas ...`) or
folders where they are installed. Names that a file holds already stay: a library of a newer minor version adds
to them. The driver and NVML come with no wheel; their names are those that the headers cuda.h and nvml.h
declare. Only names are written.
"""
import argparse, pathlib, re, subprocess, tempfile, zipfile

LIBRARIES = "cudart cublas cublasLt cudnn cufft cusolver cusparse curand nvrtc nvJitLink cupti nccl".split()
# libnvrtc.alt.so and the like are other builds of the same library
SHARED = re.compile(r"(?:^|/)(lib(?:%s)\.so\.\d+)$" % "|".join(LIBRARIES))
HEADERS = {"cuda.h": ("libcuda.so.1", "cu"), "nvml.h": ("libnvidia-ml.so.1", "nvml")}


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        _, kind, name = line.split()
        name = name.partition("@")[0]
        # C functions of the interface; a static library inside exports others of C++
        if kind in "TW" and not name.startswith(("_Z", "_init", "_fini")):
            yield name


def declared(header, prefix):
    # A declaration, or what a macro renames one to: `#define cuMemAlloc cuMemAlloc_v2`.
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    yield from re.findall(r"\b(%s[A-Z]\w+)\s*\(" % prefix, text)
    yield from re.findall(r"#define\s+%s\w+\s+(?:\w+\()?(%s[A-Z]\w+)" % (prefix, prefix), text)


def read(member, data, names):
    if match := SHARED.search(member):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data())
            file.flush()
            names.setdefault(match[1], set()).update(exported(file.name))
    elif (header := HEADERS.get(pathlib.PurePath(member).name)) and "crt" not in member:
        names.setdefault(header[0], set()).update(declared(data().decode(errors="replace"), header[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "capture/emulator/symbols")
    options = parser.parse_args()
    names = {}
    for source in options.sources:
        if source.is_dir():
            for file in source.rglob("*"):
                if file.is_file():
                    read(str(file), file.read_bytes, names)
        else:
            with zipfile.ZipFile(source) as wheel:
                for member in wheel.namelist():
                    read(member, lambda member=member: wheel.read(member), names)
    options.out.mkdir(exist_ok=True)
    for soname, found in sorted(names.items()):
        path = options.out / f"{soname}.txt"
        before = set(path.read_text().split()) if path.exists() else set()
        path.write_text("".join(f"{name}\n" for name in sorted(before | found)))
        print(f"{soname}: {len(before | found)} functions, {len(found - before)} of them new")


if __name__ == "__main__":
    main()
