#!/usr/bin/env python3
"""What-if questions: programs captured one way are asked what another way would be, which is then run on an emulated device.

    check_what_ifs.py METAPROF PYTHON SHARED OUT.csv [--models FILE] [--only WORD]

METAPROF is the program, PYTHON one that has torch and the libraries, SHARED the folder of evidence, whose zoo the models are of. Each model
of what_ifs.txt is trained for two steps in each of WAYS by tests/recorder/programs/plain_training.py and captured; then `metaprof profile` is asked
for every other way (of the plain one) and back (of the precisions). Pairs that OUT.csv has already are left out. A row: model, captured as,
asked for, phases equal to those of the run, phases, the first difference or why it was refused.
"""
import argparse
import csv
import json
import os
import pathlib
import sys

import captures

HERE = pathlib.Path(__file__).resolve().parent
TRAINING = HERE.parents[1] / "tests/recorder/programs/plain_training.py"
PLAIN = {"batch": None, "seq": None, "image": None, "over": {}, "precision": "fp32", "optimizer": "adamw", "optimizer_impl": "default",
         "channels_last": False, "checkpoint": None, "checkpoint_reentrant": False, "accumulate": 1, "clip_norm": None, "clip_value": None,
         "zero_grad_to_none": True, "steps": 2, "mode": "train", "alloc_conf": "", "memory_mib": None, "device": "h200", "env": {},
         "expect_oom": False}
# A way to train: what is different from the plain one, and the options that ask for it. {layers}: the model's, as what_ifs.txt has them.
WAYS = {
    "plain": ({}, []),
    "bf16": ({"precision": "bf16"}, ["--precision", "bf16"]),
    "amp-bf16": ({"precision": "amp-bf16"}, ["--precision", "amp-bf16"]),
    "sgd-momentum": ({"optimizer": "sgd-momentum"}, ["--optimizer", "sgd-momentum"]),
    "fused": ({"optimizer_impl": "fused"}, ["--optimizer", "adamw", "--optimizer-impl", "fused"]),
    "batch": ({"batch": 3}, ["--batch", "3"]),
    "accumulate": ({"accumulate": 2}, ["--accumulate", "2"]),
    "checkpoint": ({"checkpoint": "{layers}"}, ["--checkpoint", "{layers}"]),
    "a100": ({"device": "a100"}, ["--device", "a100"]),
}
BACK = [("bf16", "plain"), ("amp-bf16", "plain"), ("amp-bf16", "bf16")]
ASKED_BACK = {"plain": ["--precision", "fp32"], "bf16": ["--precision", "bf16"]}


def with_layers(value, layers):
    return {key: one.format(layers=layers) if isinstance(one, str) else one for key, one in value.items()}


def run_ways(options, model, layers, work):
    """Trains the model in each way and keeps (phases, program) of it, in files of their own."""
    ways = [way for way in WAYS if layers or way != "checkpoint"]
    for device in ("h200", "a100"):
        some = [way for way in ways if (WAYS[way][0].get("device") or "h200") == device]
        files = [work / f"{number}.json" for number in range(len(some))]
        for file, way in zip(files, some):
            file.write_text(json.dumps({**PLAIN, "model": model, **with_layers(WAYS[way][0], layers)}))
        found, _ = captures.run(options.metaprof, ["--device", device, "--workspaces", "none"], [options.python, TRAINING, *files], work, len(some))
        for way, (phases, program) in zip(some, found):
            if phases is not None and program.exists():
                program.rename(work / f"{model}.{way}.mp")
                (work / f"{model}.{way}.phases.json").write_text(json.dumps(phases))


def compared(metaprof, asked, program, expected):
    """Phases equal, phases, the first that differs or why there is no answer."""
    answer = captures.json_of(metaprof, "profile", program, *asked)
    if isinstance(answer, str):
        return [0, len(expected), answer]
    ours, theirs = captures.statistics(answer["phases"]), captures.statistics(expected)
    same = [one == other for one, other in zip(ours, theirs)]
    at = same.index(False) if False in same else None
    first = "" if at is None else next(f"{ours[at]['phase']} {ours[at]['step']} {name}: {theirs[at][name]} run, {ours[at][name]} answered"
                                       for name in captures.STATISTICS if ours[at][name] != theirs[at][name])
    return [sum(same), max(len(ours), len(theirs)), first]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("shared", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=HERE / "what_ifs.txt")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    os.environ["METAPROF_SHARED"] = str(options.shared)
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(exist_ok=True)
    done = captures.names_done(options.out)
    for line in options.models.read_text().splitlines():
        model, _, layers = line.partition(" ")
        if not model or model.startswith("#") or options.only not in model:
            continue
        pairs = [("plain", way) for way in WAYS if way != "plain"] + BACK
        pairs = [pair for pair in pairs if f"{model}: {pair[0]} -> {pair[1]}" not in done and (layers or "checkpoint" not in pair)]
        if pairs and not (work / f"{model}.plain.mp").exists():
            run_ways(options, model, layers, work)
        for before, after in pairs:
            program, phases = work / f"{model}.{before}.mp", work / f"{model}.{after}.phases.json"
            if not program.exists() or not phases.exists():
                row = [0, 0, "it could not be run"]
            else:
                asked = ASKED_BACK[after] if before != "plain" else [word.format(layers=layers) for word in WAYS[after][1]]
                row = compared(options.metaprof, asked, program, json.loads(phases.read_text()))
            captures.append(options.out, [f"{model}: {before} -> {after}", *row])
    rows = [row for row in csv.reader(open(options.out)) if row[2] != "0"]
    phases = [sum(int(row[column]) for row in rows) for column in (1, 2)]
    print(f"{len(rows)} pairs, {sum(row[1] == row[2] for row in rows)} equal in every phase; {phases[0]} of {phases[1]} phases "
          f"({100 * phases[0] / max(1, phases[1]):.1f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
