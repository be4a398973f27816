#!/usr/bin/env python3
"""Training steps that others measured on a real GPU and published, repeated by `metaprof run` on an emulated one.

    repeat_public_runs.py METAPROF PYTHON PROGRAM OUT.csv [--table real.csv] [--device h100] [--only WORD] [--options "WORDS"]
    repeat_public_runs.py --markdown OUT.csv

PROGRAM trains each row of the table that lies beside it, `real_h100.csv`, and writes what torch said of each to `--out FILE`. --table is
another one, with or without measured peaks: columns model, batch, seq, image, precision, checkpoint, peak_active, peak_reserved. Each row
is a run of its own; rows that OUT.csv has are left out, so that a check that was stopped goes on. PYTHON has the versions that were measured
with; METAPROF_CUDNN names a cuDNN that can plan for a device that is only described, if theirs cannot.

A row of OUT.csv has the report's peaks after set-up, `own` (whether the program itself read the same), kinds of convolutions whose
workspaces were not known, and seconds. --markdown prints the table of docs/evidence/accuracy.md.
"""
import argparse
import csv
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

KEY = ("model", "batch", "seq", "image", "precision", "checkpoint")
FIGURES = ("peak_active", "peak_reserved", "active", "reserved", "own", "unplanned", "seconds", "failed")


def peak(phases, field):
    return max(row[field]["peak"] for row in phases if row["phase"] != "setup")


def run(options, row, folder):
    """The row's figures."""
    program = folder / options.program.name
    shutil.copy(options.program, program)
    with open(folder / "real_h100.csv", "w", newline="") as file:
        table = csv.DictWriter(file, list(row), lineterminator="\n")
        table.writeheader()  # one row; the program subtracts what is measured from what it finds
        table.writerow(row | {name: row.get(name) or "1" for name in ("peak_active", "peak_reserved")})
    begin = time.monotonic()
    command = [options.metaprof, "run", "--device", options.device, *shlex.split(options.options), "--json", folder / "run.json", "--",
               options.python, program, "--out", folder / "own.csv"]
    result = subprocess.run(command, capture_output=True, text=True)
    figures = {"seconds": round(time.monotonic() - begin)}
    own = list(csv.DictReader(open(folder / "own.csv"))) if (folder / "own.csv").exists() else []
    if not own or own[0]["failed"]:
        return figures | {"failed": own[0]["failed"] if own else result.stderr.strip().splitlines()[-1]}
    rank, = json.loads((folder / "run.json").read_text())["ranks"]
    active, reserved = (peak(rank["phases"], field) for field in ("active_bytes", "reserved_bytes"))
    return figures | {"active": active, "reserved": reserved, "own": (active, reserved) == (int(own[0]["active"]), int(own[0]["reserved"])),
                      "unplanned": rank["workspaces"]["unplanned"]}


def error(found, real):
    return "equal" if int(found) == int(real) else f"{100 * (int(found) / int(real) - 1):+.3f} %"


def markdown(rows):
    print("| model | batch | tokens or pixels | precision | checkpointed | active, B | real | reserved, B | real |")
    print("|---|--:|--:|---|---|--:|--:|--:|--:|")
    for row in rows:
        cells = [row["model"], row["batch"], row["image"] or row["seq"], row["precision"], "yes" if row["checkpoint"] == "1" else ""]
        for found, real in (("active", "peak_active"), ("reserved", "peak_reserved")):
            known = row[found] and row[real]
            cells += [f"{int(row[found]):,}" if row[found] else row["failed"][:60], error(row[found], row[real]) if known else ""]
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metaprof", nargs="?")
    parser.add_argument("python", nargs="?")
    parser.add_argument("program", nargs="?", type=pathlib.Path)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--device", default="h100")
    parser.add_argument("--only", default="")
    parser.add_argument("--options", default="")
    parser.add_argument("--markdown", type=pathlib.Path)
    options = parser.parse_args()
    if options.markdown:
        return markdown(csv.DictReader(open(options.markdown)))
    if not options.out:
        parser.error("METAPROF, PYTHON, PROGRAM and OUT.csv are needed")
    rows = list(csv.DictReader(open(options.table or options.program.with_name("real_h100.csv"))))
    exists = options.out.exists()
    done = [tuple(row[name] for name in KEY) for row in csv.DictReader(open(options.out))] if exists else []
    with open(options.out, "a", newline="") as file:
        table = csv.DictWriter(file, [*KEY, *FIGURES], extrasaction="ignore", lineterminator="\n")
        if not exists:
            table.writeheader()
        for row in rows:
            key = tuple(row[name] for name in KEY)
            if key in done or options.only not in ".".join(key):
                continue
            with tempfile.TemporaryDirectory() as folder:
                figures = run(options, row, pathlib.Path(folder))
            table.writerow(row | figures)
            file.flush()
            print(".".join(key), figures, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
