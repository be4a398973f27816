#!/usr/bin/env python3
"""The functions of the emulated device's libraries, counted: the table in docs/explanation/emulator.md.

    count_stand_ins.py BUILD/emulator            prints it
    count_stand_ins.py BUILD/emulator --check    exit status 1 if the page has another one
    count_stand_ins.py BUILD/emulator --write    writes it there

BUILD/emulator/stubs names the functions of each library that have a stub, and what the stub does; a function that is written by hand
takes the place of its stub, which is weak (capture/emulator/stub.h).
"""
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/explanation/emulator.md"
BEGIN, END = "<!-- functions: begin -->\n", "<!-- functions: end -->"


def row(library, stubs):
    """By hand, only succeed, fail."""
    kinds = dict(reversed(found) for found in re.findall(r"^(REFUSES|SUCCEEDS|WORKS)\((\w+)\)", stubs.read_text(), re.M))
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    weak = {line.split()[2].split("@")[0] for line in symbols.splitlines() if line.split()[1] == "W"}
    left = [kind for name, kind in kinds.items() if name in weak]
    return len(kinds), len(kinds) - len(left), left.count("SUCCEEDS") + left.count("WORKS"), left.count("REFUSES")


def table(folder):
    lines = ["| library | functions | written by hand | only succeed | fail and say their name |", "|---|--:|--:|--:|--:|"]
    total = [0] * 4
    for stubs in sorted((folder / "stubs").glob("*.cpp"), key=lambda file: file.name.lower()):
        numbers = row(folder / "lib" / stubs.stem, stubs)
        total = [a + b for a, b in zip(total, numbers)]
        lines.append(f"| `{stubs.stem}` | " + " | ".join(f"{n:,}" for n in numbers) + " |")
    lines.append("| all | " + " | ".join(f"{n:,}" for n in total) + " |")
    return "\n".join(lines) + "\n"


def main():
    found, page = table(pathlib.Path(sys.argv[1])), PAGE.read_text()
    before, rest = page.split(BEGIN)
    written, after = rest.split(END)
    if "--write" in sys.argv:
        PAGE.write_text(before + BEGIN + found + END + after)
    elif "--check" in sys.argv:
        if written != found:
            sys.exit(f"{PAGE.name}: the table is not that of the libraries: tools/count_stand_ins.py {sys.argv[1]} --write")
    else:
        print(found, end="")


if __name__ == "__main__":
    main()
