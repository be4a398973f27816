#!/usr/bin/env python3
"""Checks the text of tracked files: no path of somebody's machine, no note to be done later, no word about
how the project came to be. Recorded data under tests/data is not ours to word.

Usage: check_text.py [ROOT]. Prints one line per finding and exits with 1, or 0 if there is none.
"""

import pathlib
import re
import subprocess
import sys

FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(work|home|root|Users)/\w"),
    "work left undone": re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"),
    "a word about how the text was made": re.compile(
        r"\b(sub-?)?agents?\b|\bAI[- ]generated\b|\bissues? #?\d+|\bas requested\b", re.I
    ),
}
SKIPPED = ("tests/data/", "tools/check_text.py", "tests/tools/")


def tracked_files(root):
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in listing.split("\0") if name and not name.startswith(SKIPPED)]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    files, problems = 0, 0
    for name in tracked_files(root):
        path = root / name
        try:
            text = path.read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        files += 1
        for number, line in enumerate(text.splitlines(), start=1):
            for what, pattern in FORBIDDEN.items():
                match = pattern.search(line)
                if match:
                    print(f"{name}:{number}: {what}: '{match.group(0)}'")
                    problems += 1
    print(f"text: {files} files, {problems} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
