#!/usr/bin/env python3
"""Runs the commands whose output the documents show, and compares.

    run_transcripts.py METAPROF            exit status 1 if a document shows something else
    run_transcripts.py METAPROF --write    writes what was printed into the documents
    … --python PYTHON                      with a PyTorch that exports the model of the tutorial, so that its commands run, too

A transcript is a fenced block of a document in PAGES: lines `$ metaprof …` or `$ ./run …`, each with what it printed. A line `…` stands for
any lines; what follows it must follow in the output, too. --write keeps the lines before and behind a `…`, as many as there were.
Commands run in one folder per document, so that one can use what another wrote. NOT_RUN names those that need more than the checkout
and a PyTorch. The model of the tutorial has convolutions, whose figures are those with a cuDNN installed.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/tutorials/first_profile.md", "docs/how_to/cookbook.md", "docs/how_to/planning.md", "docs/how_to/rent.md",
         "docs/how_to/lengths.md")
EXPORTED = r"resnet50\.pt2"  # by examples/export/resnet50.py
# Per document: patterns of its commands.
NOT_RUN = {
    "docs/how_to/cookbook.md": [r"llama_8b_lora"],  # an export that is too large for the checkout
}
# What a document asks the reader to have done.
PREPARED = {
    "docs/how_to/cookbook.md": [
        "profile llama_3_2_1b --json before.json",
        "profile llama_3_2_1b --optimizer-impl fused --json after.json",
        "profile gpt2 --json accepted.json",
    ],
}
# Files that lie in the reader's folder: where from, and by which name.
FILES = {
    "docs/how_to/cookbook.md": {"tests/data/logs/out_of_memory.log": "train.log"},
    "docs/how_to/lengths.md": {"tests/data/lengths/lengths.txt": "lengths.txt"},
}
COMMAND = re.compile(r"^\$ (?:metaprof|\./run) (.*)$")
CUT = "…"


def run(metaprof, words, folder):
    environment = dict(os.environ, METAPROF_MODELS=str(ROOT / "tests/data/models"))
    done = subprocess.run(f"{metaprof} {words}", shell=True, cwd=folder, env=environment, capture_output=True, text=True)
    return (done.stderr + done.stdout).rstrip("\n").split("\n")


def parts_of(lines):
    """The stretches between lines `…`."""
    parts = [[]]
    for line in lines:
        if line == CUT:
            parts.append([])
        else:
            parts[-1].append(line)
    return parts


def shows(shown, printed):
    """Whether a transcript shows what was printed, in which parts are left out."""
    parts = parts_of(shown)
    if len(parts) == 1:
        return shown == printed
    if printed[:len(parts[0])] != parts[0] or parts[-1] and printed[-len(parts[-1]):] != parts[-1]:
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        while printed[at:at + len(part)] != part:
            at += 1
            if at + len(part) > len(printed):
                return False
        at += len(part)
    return True


def shortened(shown, printed):
    """What was printed, cut where the transcript was. A stretch in the middle begins where its first line did."""
    parts = parts_of(shown)
    if len(parts) == 1:
        return printed
    out = printed[:len(parts[0])]
    for part in parts[1:-1]:
        first = next((n for n, line in enumerate(printed) if part and line[:12] == part[0][:12]), None)
        out += [CUT] + (printed[first:first + len(part)] if first is not None else part)
    return out + [CUT] + (printed[-len(parts[-1]):] if parts[-1] else [])


def transcripts(lines):
    """(first line, past the last line, words) of each command's output."""
    fenced, begin, words = False, None, None
    for number, line in enumerate(lines):
        command = COMMAND.match(line) if fenced else None
        fence = line.startswith("```")
        if words is not None and (fence or command):
            yield begin, number, words
            words = None
        if fence:
            fenced = not fenced
        if command:
            begin, words = number + 1, command[1]


def check(metaprof, page, write, python):
    path = ROOT / page
    lines = path.read_text(encoding="utf-8").split("\n")
    left_out = NOT_RUN.get(page, [])
    unused = set(left_out)
    exported = any(re.search(EXPORTED, words) for _, _, words in transcripts(lines))
    count, wrong, changes = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        if exported and python:
            subprocess.run([python, ROOT / "examples/export/resnet50.py"], cwd=folder, check=True)
        for source, name in FILES.get(page, {}).items():
            shutil.copy(ROOT / source, pathlib.Path(folder) / name)
        for words in PREPARED.get(page, []):
            run(metaprof, words, folder)
        for begin, end, words in transcripts(lines):
            hit = {pattern for pattern in left_out if re.search(pattern, words)}
            unused -= hit
            if hit or re.search(EXPORTED, words) and not python:
                continue
            count += 1
            shown, printed = lines[begin:end], run(metaprof, words, folder)
            if shows(shown, printed):
                continue
            wrong += 1
            changes.append((begin, end, shortened(shown, printed)))
            if not write:
                differing = next((n for n, (a, b) in enumerate(zip(shown, printed)) if a != b), min(len(shown), len(printed)))
                print(f"{page}:{begin + differing + 1}: metaprof {words} prints\n  "
                      f"{printed[differing] if differing < len(printed) else '(nothing more)'}")
    for pattern in sorted(unused):
        print(f"{page}: no command has '{pattern}', which is not run")
    for begin, end, text in reversed(changes if write else []):
        lines[begin:end] = text
    if write and changes:
        path.write_text("\n".join(lines), encoding="utf-8")
    print(f"{page}: {count} commands, {wrong} {'written' if write else 'differ'}")
    return 0 if write else wrong + len(unused)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--python")
    options = parser.parse_args()
    wrong = sum(check(options.metaprof.resolve(), page, options.write, options.python) for page in PAGES)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
