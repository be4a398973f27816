#!/usr/bin/python3
"""tools/wheel/check_wheel.py WHEEL PLATFORM PYTHON: whether the wheel runs on every machine of PLATFORM (manylinux_2_28_x86_64), and is complete.

PYTHON: one that has auditwheel, which reads what libraries and which of their versions the wheel's programs ask for.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import zipfile

import parts

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def expected_files(emulator_lists: str) -> list[str]:
    """What the program looks for beside itself, and what tells of the wheel's parts. A `*` stands for the version."""
    home = "metaprof/lib/metaprof/"
    stand_ins = re.findall(r"^stand_in\((\S+)", emulator_lists, re.M)
    return [
        "metaprof/__init__.py",
        "metaprof/bin/metaprof",
        *(f"{home}cudnn/{name}" for name in ("metaprof-cudnn-plans", "libcuda.so.1", "libcublasLt.so.12", "libcublasLt.so.13")),
        *(f"{home}emulator/{name}" for name in ["libmetaprof-emulator.so", "libcuda.so", *stand_ins]),
        f"{home}recorder/sitecustomize.py",
        *(f"{home}licenses/{part.package}.txt" for part in parts.PARTS if part.how == "linked"),
        "metaprof-*.dist-info/sboms/metaprof-*.cdx.json",
        "metaprof-*.dist-info/licenses/LICENSE",
        "metaprof-*.dist-info/entry_points.txt",
    ]


def missing_files(wheel: pathlib.Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = [pathlib.PurePosixPath(name) for name in archive.namelist()]
    lists = (ROOT / "capture/emulator/CMakeLists.txt").read_text(encoding="utf-8")
    return [file for file in expected_files(lists) if not any(name.match(file) for name in names)]


def age(platform: str) -> tuple[int, ...]:
    """manylinux_2_28_x86_64: the C library 2.28. A wheel with no such tag needs this machine's."""
    found = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    return (int(found[1]), int(found[2])) if found else (sys.maxsize,)


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__.splitlines()[0])
    wheel, platform, python = sys.argv[1:]
    if missing := missing_files(pathlib.Path(wheel)):
        sys.exit(f"tools/wheel/check_wheel.py: {wheel} lacks {', '.join(missing)}")
    shown = subprocess.run([python, "-m", "auditwheel", "show", "--json", wheel], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(shown)["overall_tag"]
    if age(found) > age(platform):
        sys.exit(f"tools/wheel/check_wheel.py: {wheel} is {found} and not {platform}: auditwheel show says what it asks for")
    print(f"{wheel}: {found}", file=sys.stderr)


if __name__ == "__main__":
    main()
