#!/usr/bin/env python3
"""Two training steps of a model of the zoo for each of several plans, each in a process of its own. It knows nothing of metaprof.

    train_planned.py ZOO "MODEL OPTIONS PLAN.py"…

ZOO is the folder of zoo.py and record_model.py, OPTIONS a JSON object without blanks with words of record_model.py's configuration, PLAN.py a
file with `apply_plan(model)`.
"""
import contextlib
import importlib.util
import json
import sys

import torch

from forks import each_in_a_fork

sys.path.insert(0, sys.argv[1])
import record_model  # noqa: E402
import zoo  # noqa: E402

AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
PARAMETERS = {"bf16": torch.bfloat16, "fp16": torch.float16}


def apply_plan(path, model):
    spec = importlib.util.spec_from_file_location("plan", path)
    plan = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plan)
    return plan.apply_plan(model)


def train(line):
    name, options, plan = line.split()
    options = {**record_model.DEFAULTS, "steps": 2, **json.loads(options)}
    with record_model.no_initialisation():
        model, inputs = zoo.build(name, device="cpu", batch=options["batch"], seq=options["seq"], image=options["image"],
                                  dtype=PARAMETERS.get(options["precision"]), **options["over"])
    apply_plan(plan, model)
    model.to("cuda")
    inputs = tuple(value.to("cuda") for value in inputs)
    optimizer = record_model.make_optimizer(options, torch, [p for p in model.parameters() if p.requires_grad])
    dtype = AUTOCAST.get(options["precision"])
    for _ in range(options["steps"]):
        with torch.autocast("cuda", dtype) if dtype else contextlib.nullcontext():
            loss = model(*inputs)
        loss.backward()
        if optimizer:
            optimizer.step()
            optimizer.zero_grad()


def main(lines):
    for name in {line.split()[0] for line in lines}:
        zoo.build(name)  # imports the libraries once, before the forks
    each_in_a_fork(lines, train)


if __name__ == "__main__":
    main(sys.argv[2:])
