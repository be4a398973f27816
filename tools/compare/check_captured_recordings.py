#!/usr/bin/env python3
"""Recorded training steps, run as programs on an emulated device, captured, and run again by the engine.

    check_captured_recordings.py METAPROF PYTHON SHARED OUT.csv [--recordings FOLDER] [--only PATTERN]... [--together 16]

METAPROF is the program, PYTHON one that has the PyTorch of the recordings, SHARED the folder of evidence (its recordings/models unless
--recordings says otherwise). Each configuration is trained by tests/recorder/programs/plain_training.py, which knows nothing of metaprof.
Recordings that OUT.csv has already are left out, so that a check that was stopped goes on. A row: the recording; phases of the run that
are equal to the recording's; phases of the captured program that are equal to the run's (`metaprof check`); phases; errors of its peaks of
allocated and reserved bytes; the first difference. The captured programs stay in OUT.csv.d.
"""
import argparse
import csv
import fnmatch
import itertools
import json
import os
import pathlib
import sys

import captures

TRAINING = pathlib.Path(__file__).resolve().parents[2] / "tests/recorder/programs/plain_training.py"


def machine(recording):
    """Options of `metaprof run` that a configuration needs. What has the same is run together."""
    config = recording["config"]
    options = ["--device", config["device"], "--workspaces", "none"]
    if config["memory_mib"]:
        options += ["--memory", f"{config['memory_mib']}MiB"]
    if config["alloc_conf"]:
        options += ["--env", "PYTORCH_ALLOC_CONF=" + config["alloc_conf"]]  # as they were recorded: PyTorch reads it from 2.10 on
    for name, value in sorted(config["env"].items()):
        options += ["--env", f"{name}={value}"]
    return options


def equal(expected, found):
    """How many phases are equal. How much there is when memory ran out depends on when the error is caught."""
    count = 0
    for one, other in itertools.zip_longest(captures.statistics(expected), captures.statistics(found)):
        if one and other and expected and one["phase"] == expected[-1]["phase"] and "out_of_memory" in expected[-1]:
            for name in captures.STATISTICS:
                one[name], other[name] = ({key: value for key, value in some[name].items() if key != "current"} for some in (one, other))
        count += one == other
    return count


def row_of(metaprof, name, recording, phases, program):
    recorded = recording["phases"]
    if phases is None or not program.exists():
        return [name, equal(recorded, phases or []), 0, len(recorded), "", "", "no program was saved"]
    same, _, allocated, reserved, first = captures.checked(metaprof, program)
    return [name, equal(recorded, phases), same, len(recorded), allocated, reserved, first]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--recordings", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--together", type=int, default=16)
    options = parser.parse_args()
    os.environ["METAPROF_SHARED"] = str(options.shared)
    folder = options.recordings or options.shared / "recordings/models"
    done = captures.names_done(options.out)
    recordings = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))
                  if file.stem not in done and any(fnmatch.fnmatch(file.stem, one) for one in options.only or ["*"])}
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(exist_ok=True)
    alike = lambda name: machine(recordings[name])  # noqa: E731
    small_first = sorted(recordings, key=lambda name: recordings[name]["phases"][-1]["reserved_bytes"]["peak"])
    for needed, names in itertools.groupby(sorted(small_first, key=alike), key=alike):
        names = list(names)
        while names:
            some, names = names[:options.together], names[options.together:]
            files = [work / f"{number}.json" for number in range(len(some))]
            for file, name in zip(files, some):
                file.write_text(json.dumps(recordings[name]["config"]))
            found, _ = captures.run(options.metaprof, needed, [options.python, TRAINING, *files], work, len(some))
            for name, (phases, program) in zip(some, found):
                if program.exists():
                    program = program.rename(work / f"{name}.mp")
                captures.append(options.out, row_of(options.metaprof, name, recordings[name], phases, program))
    rows = list(csv.reader(open(options.out)))
    print(f"{len(rows)} recordings; run equal to the recording in {sum(row[1] == row[3] for row in rows)}, captured program equal to its run in "
          f"{sum(row[2] == row[3] for row in rows)}, its peak of reserved bytes in {sum(row[5] in ('0', '0.0') for row in rows)}; worst error "
          f"of the peak {100 * max(abs(float(row[4] or 1)) for row in rows):.4f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
