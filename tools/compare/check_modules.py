#!/usr/bin/env python3
"""Models of public libraries through `metaprof.profile(module)`, each beside a run of the same steps on an emulated device.

    check_modules.py METAPROF PYTHON OUT.csv LIST [--only WORD] [--together 8] [--device h200]

METAPROF is the program, PYTHON one that has torch and the libraries, LIST has lines of draw_library_models.py or library_models.txt. Models
that OUT.csv has already are left out, so that a check that was stopped goes on. A row: the model's line, phases that are equal, phases,
errors of the peaks of allocated and reserved bytes, the first phase that differs with both figures, seconds of the profile, or why there is none, what
of the module was another afterwards. A phase is equal if its peaks and ends of allocated and reserved bytes are.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import captures

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "record"))  # what trains the models
QUANTITIES = ("allocated_bytes", "reserved_bytes")


def state_of(model):
    """What a user could see of a module: tensors with their memory, versions and gradients, hooks, attributes, modes, random numbers."""
    import torch

    state = {"random": torch.get_rng_state().tolist()}
    for name, module in model.named_modules():
        for kind in ("_parameters", "_buffers"):
            for key, each in vars(module)[kind].items():
                state[f"{name}.{key}"] = each if each is None else (
                    id(each), each.data_ptr(), each._version, each.device, each.dtype, each.requires_grad, each.grad is None, len(each._backward_hooks or ()))
        state[f"{name}: mode"] = module.training
        state[f"{name}: class"] = type(module)
        state[f"{name}: attributes"] = sorted((key, id(each)) for key, each in vars(module).items())
        state[f"{name}: hooks"] = [len(each) for key, each in vars(module).items() if key.endswith("_hooks")]
    return state


def options_of(job, line):
    """What the line says of precision and optimizer, as metaprof takes it."""
    from train_library_models import PRECISIONS

    precision, optimizer = line.split()[2:4]
    options = {"optimizer": "adamw"} if optimizer == "adamw" else {
        "optimizer": job.optimizer([each for each in job.model.parameters() if each.requires_grad])}
    if precision not in (*PRECISIONS, "fp32"):
        options["precision"] = precision
    if "clip" in job.options:
        options["clip_norm"] = float(job.options["clip"])
    return options


def profile(line, path, device):
    """Writes the JSON of `metaprof.profile` of a line's module, or why there is none."""
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    import metaprof
    from train_library_models import Job, loss_of

    job = Job(line, "cpu")
    job.convert()
    before = state_of(job.model)
    begun = time.monotonic()
    try:
        result = metaprof.profile(job.model, job.arguments, kwargs=job.named, loss=loss_of, steps=2, device=device, workspaces="none", **options_of(job, line))
        written = {**result.json, "seconds": time.monotonic() - begun}
    except metaprof.Error as error:
        written = {"refused": str(error)}
    after = state_of(job.model)
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    path.write_text(json.dumps({**written, "changed": sorted(changed)}))


def phases_of(report):
    return {phase["phase"]: phase for phase in report["phases"]}


def compared(run, profiled):
    """Phases equal, phases, errors of the two peaks, the first difference."""
    measured, ours = phases_of(run), phases_of(profiled)
    differing = [(name, key, when, ours.get(name, {}).get(key, {}).get(when), phase[key][when])
                 for name, phase in measured.items() for key in QUANTITIES for when in ("peak", "current")]
    differing = [each for each in differing if each[3] != each[4]]
    names = {each[0] for each in differing}

    def error(key):
        real = max(phase[key]["peak"] for phase in measured.values())
        return max(phase[key]["peak"] for phase in ours.values()) / real - 1

    return [len(measured) - len(names), len(measured), *(f"{error(key):.6f}" for key in QUANTITIES), differing[0] if differing else ""]


def uses_the_device(line):
    """Whether the library uses the device while it is imported, so that no fork can use it afterwards."""
    return line.startswith("diffusers ")


def one_run(options, lines, work):
    """The reports of the runs of some lines, None where one failed."""
    where = work / "run.json"
    where.unlink(missing_ok=True)
    done = subprocess.run([options.metaprof, "run", "--device", options.device, "--workspaces", "none", "--json", where, "--", options.python,
                           HERE.parent / "record/train_library_models.py", "--on-host", *lines], capture_output=True, text=True)
    (work / "run.log").write_text(done.stdout + done.stderr)
    ranks = json.loads(where.read_text())["ranks"] if where.exists() else []
    failed = [line for line in lines if f"FAILED {line}\n" in done.stderr]
    reports = dict(zip(lines, ranks)) if len(ranks) == len(lines) else {rank_line: report for rank_line, report in zip(
        [line for line in lines if line not in failed], ranks)}
    return [None if line in failed else reports.get(line) for line in lines]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--together", type=int, default=8)
    parser.add_argument("--device", default="h200")
    options = parser.parse_args()
    lines = captures.lines_left(options.list, options.out, options.only)
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(exist_ok=True)
    lines.sort(key=uses_the_device)
    while lines:
        some = lines[:1 if uses_the_device(lines[0]) else options.together]
        lines = [line for line in lines if line not in some]
        paths = [work / (re.sub(r"[^A-Za-z0-9._=-]+", "_", line) + ".json") for line in some]
        for path in paths:
            path.unlink(missing_ok=True)
        subprocess.run([options.python, __file__, "--profiles", options.device, *(word for pair in zip(some, paths) for word in pair)],
                       env={**os.environ, "METAPROF_PROGRAM": options.metaprof})
        for line, path, run in zip(some, paths, one_run(options, some, work)):
            profiled = json.loads(path.read_text()) if path.exists() else {"refused": "the process ended"}
            why = "the run failed" if run is None else profiled.get("refused", "")
            row = [""] * 6 if why else [*compared(run, profiled), f"{profiled['seconds']:.1f}"]
            with options.out.open("a") as out:
                csv.writer(out).writerow([line, *row, why, " ".join(profiled.get("changed", []))[:200]])
    rows = [row for row in csv.reader(open(options.out)) if row[2]]
    equal = sum(row[1] == row[2] for row in rows)
    print(f"{equal} of {len(rows)} models equal in every phase")
    return 0 if equal == len(rows) else 1


def profiles(device, words):
    from forks import each_in_a_fork

    paths = dict(zip(words[::2], words[1::2]))
    for library in {line.split()[0] for line in paths}:
        with contextlib.suppress(ImportError):
            __import__(library)
    each_in_a_fork(list(paths), lambda line: profile(line, pathlib.Path(paths[line]), device))


if __name__ == "__main__":
    sys.exit(profiles(sys.argv[2], sys.argv[3:]) if sys.argv[1] == "--profiles" else main())
