#!/usr/bin/env python3
"""The largest batch that `metaprof.fit(module)` finds, beside runs of that batch and of the next one on an emulated device.

    check_fits.py METAPROF PYTHON OUT.csv LIST [--only WORD] [--device t4]

METAPROF is the program, PYTHON one that has torch and the libraries, LIST has lines of draw_library_models.py or library_models.txt. Models that
OUT.csv already has are left out. A row: the model's line, the batch, how many captures it took, whether a run of the batch fits, whether one of the next
does, seconds of the fit, or why there is none.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import time

import captures

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "record"))  # what trains the models


def fit(line, path, device):
    """Writes the row of `metaprof.fit` of a line's module, or why there is none."""
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    import metaprof
    from check_modules import options_of
    from train_library_models import Job, loss_of

    job = Job(line, "cpu")
    job.convert()
    begun = time.monotonic()
    try:
        found = metaprof.fit(job.model, job.arguments, kwargs=job.named, loss=loss_of, steps=2, device=device, workspaces="none", **options_of(job, line))
        written = {**found.rows[0], "seconds": time.monotonic() - begun}
    except metaprof.Error as error:
        written = {"refused": str(error)}
    pathlib.Path(path).write_text(json.dumps(written))


def runs(options, line, batch, work):
    """Whether two steps of this batch run and fit."""
    report = work / "run.json"
    report.unlink(missing_ok=True)
    subprocess.run([options.metaprof, "run", "--device", options.device, "--workspaces", "none", "--json", report, "--", options.python,
                    HERE.parent / "record/train_library_models.py", "--on-host", f"{line} batch={batch}"], capture_output=True, text=True)
    rank = json.loads(report.read_text())["ranks"][0]
    return bool(rank["fits"])


def row_of(options, line, work):
    path = work / "fit.json"
    path.unlink(missing_ok=True)
    subprocess.run([options.python, __file__, "--fit", line, path, options.device], env={**os.environ, "METAPROF_PROGRAM": options.metaprof})
    found = json.loads(path.read_text()) if path.exists() else {"refused": "the process ended"}
    if "refused" in found or not found["largest"]:
        return ["", "", "", "", "", found.get("refused", "no batch fits")]
    batch = found["largest"]
    return [batch, found["captures"], runs(options, line, batch, work), runs(options, line, batch + 1, work), f"{found['seconds']:.1f}", ""]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--device", default="t4")
    options = parser.parse_args()
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(exist_ok=True)
    for line in captures.lines_left(options.list, options.out, options.only):
        row = row_of(options, line, work)
        with options.out.open("a") as out:
            csv.writer(out).writerow([line, *row])
    rows = [row for row in csv.reader(open(options.out)) if row[1]]
    right = sum(row[3:5] == ["True", "False"] for row in rows)
    print(f"{right} of {len(rows)} answers run, and the next batch does not fit")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(fit(*sys.argv[2:]) if sys.argv[1] == "--fit" else main())
