#!/usr/bin/env python3
"""Models of public libraries: run on an emulated device, captured, run again by the engine, compared event by event.

    check_library_models.py METAPROF PYTHON OUT.csv [--list FILE] [--only WORD] [--together 12] [--device h200]

METAPROF is the program, PYTHON one that has torch and the libraries. Models that OUT.csv has already are left out, so that a check that
was stopped goes on. A row: the model's line, phases that are equal, phases, errors of the peaks of allocated and reserved bytes, peak of
reserved bytes equal, share of what the engine does not know, the first difference. The captured programs stay in OUT.csv.d.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

import captures

HERE = pathlib.Path(__file__).resolve().parent


def compared(metaprof, program):
    """Phases equal, phases, errors of the two peaks, whether reserved is equal, share of what is not known, first difference."""
    checked = subprocess.run([metaprof, "check", program, "--json", "-"], capture_output=True, text=True)
    if not checked.stdout:
        return [0, 0, "", "", "", "", checked.stderr.strip()[:300]]
    result = json.loads(checked.stdout)
    one = result["summary"][0]
    profiled = subprocess.run([metaprof, "profile", program, "--json", "-"], capture_output=True, text=True)
    unknown = sum(op["share_of_output_bytes"] for op in json.loads(profiled.stdout)["unmodelled"]) if profiled.stdout else ""
    first = one["first_difference"]
    return [one["exact_phases"], one["phases"], one["peak_allocated_error"], one["peak_reserved_error"],
            one["peak_reserved_error"] == 0, unknown, json.dumps(first) if first else ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--list", type=pathlib.Path, default=HERE.parent / "record/library_models.txt")
    parser.add_argument("--only", default="")
    parser.add_argument("--together", type=int, default=12)
    parser.add_argument("--device", default="h200")
    options = parser.parse_args()
    lines = captures.lines_left(options.list, options.out, options.only)
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(exist_ok=True)
    while lines:
        some, lines = lines[:options.together], lines[options.together:]
        for old in work.glob("all*.mp"):
            old.unlink()
        run = subprocess.run([options.metaprof, "run", "--device", options.device, "--workspaces", "none", "--save", work / "all.mp", "--",
                              options.python, HERE.parent / "record/train_library_models.py", *some], capture_output=True, text=True)
        (work / "last.log").write_text(run.stdout + run.stderr)
        programs = [work / f"all.rank{number}.mp" for number in range(len(some))]
        if len(some) == 1 or (work / "all.mp").exists():  # the only one
            programs = [work / "all.mp"] * len(some)
        for line, program in zip(some, programs):
            if program.exists() and f"FAILED {line}" not in run.stderr:
                kept = program.rename(work / (re.sub(r"[^A-Za-z0-9._=-]+", "_", line) + ".mp"))
                row = compared(options.metaprof, kept)
            else:
                row = ["", "", "", "", "", "", "the program failed, or was not saved"]
            with options.out.open("a") as out:
                csv.writer(out).writerow([line, *row])
    rows = [row for row in csv.reader(open(options.out)) if row[2]]
    equal = sum(row[1] == row[2] for row in rows)
    print(f"{equal} of {len(rows)} models equal in every phase; peak of reserved bytes equal in {sum(row[5] == 'True' for row in rows)}")
    return 0 if equal == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
