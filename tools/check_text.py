#!/usr/bin/env python3
"""Checks the text of tracked files: no path of somebody's machine, no note to be done later, no word about how the project came to
be, no private word for a public idea (tools/private_words.txt). Recorded data under tests/data is not ours to word.

Usage: check_text.py [ROOT]           one line per finding; exits with 1, or 0 if there is none
       check_text.py [ROOT] --count   how often each private word stands in prose and in code
"""

import argparse
import collections
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
WORDS = pathlib.Path(__file__).with_name("private_words.txt")
GENERATED = ("docs/evidence/transcripts.md",)
# Their string literals are help and messages.
SPOKEN = re.compile(r"^(cli/[^/]*|.*step/options|(estimate|reports)/report_forms)\.cpp$")
CODE = (".h", ".cpp", ".inc", ".py")

PrivateWord = collections.namedtuple("PrivateWord", "text pattern instead where")


def tracked_files(root):
    command = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "--cached"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [name for name in listing.split("\0") if name and not name.startswith(SKIPPED)]


def private_words():
    words = []
    for line in WORDS.read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        text, instead, where = (part.strip() for part in line.rsplit(" | ", 2))
        words.append(PrivateWord(text, re.compile(rf"\b(?:{text})\b", re.I), instead, where.split()))
    return words


def prose_of_markdown(text):
    """The lines without code: fenced and indented blocks, and what stands in backticks, are blank."""
    lines, fenced = [], False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        block = fence or fenced or line.startswith("    ")
        lines.append("" if block else re.sub(r"`[^`]*`|\]\([^)]*\)", " ", line))
    return lines


def literals(text):
    """Each line's string literals."""
    return [" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', "" if line.startswith("#include") else line)) for line in text.splitlines()]


def prose_of(name, text):
    if name in GENERATED:
        return []
    if name.endswith(".md"):
        return prose_of_markdown(text)
    return literals(text) if SPOKEN.search(name) else []


def findings(name, text, words):
    """(line, what, the text that was found)"""
    for number, line in enumerate(text.splitlines(), start=1):
        for what, pattern in FORBIDDEN.items():
            for match in pattern.finditer(line):
                yield number, what, match.group(0)
    lines = {"prose": prose_of(name, text), "code": text.splitlines() if name.endswith(CODE) else []}
    for word in words:
        for where in word.where:
            for number, line in enumerate(lines[where], start=1):
                for match in word.pattern.finditer(line):
                    yield number, f"a private word, use: {word.instead}", match.group(0)


def texts(root):
    for name in tracked_files(root):
        try:
            yield name, (root / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


def count(root):
    words, counts = private_words(), collections.Counter()
    for name, text in texts(root):
        prose = "\n".join(prose_of(name, text))
        code = text if name.endswith(CODE) and name != "tools/private_words.txt" else ""
        for word in words:
            counts[word.text, "prose"] += len(word.pattern.findall(prose))
            counts[word.text, "code"] += len(word.pattern.findall(code))
    for word in words:
        print(f"{word.text:60} {counts[word.text, 'prose']:6} prose {counts[word.text, 'code']:6} code   -> {word.instead}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--count", action="store_true")
    options = parser.parse_args()
    root = options.root.resolve()
    if options.count:
        return count(root)
    files, problems, words = 0, 0, private_words()
    for name, text in texts(root):
        files += 1
        for number, what, found in findings(name, text, words):
            print(f"{name}:{number}: {what}: '{found}'")
            problems += 1
    print(f"text: {files} files, {problems} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
