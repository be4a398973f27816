#!/usr/bin/env python3
"""Records what models with torch.cond take on an emulated H200, for tests/data/branches.

    tools/record_branches.py [NAME ...] --metaprof build/release/cli/metaprof

Needs PyTorch 2.11. Every model of tests/data/branches/models.py is exported (models/NAME.pt2), and run for three steps of SGD, once with each
condition. recorded.json has the allocator's statistics by phase. Names keep what was recorded before."""
import argparse
import pathlib
import sys

from recorded_phases import models_of, phases_of_run, write_models

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests/data/branches"
sys.path.insert(0, str(FOLDER))


def train(name: str, condition: str):
    """In a process on the emulated device."""
    import torch

    import models

    model = models.MODELS[name]().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = models.EXAMPLES[name]().cuda()
    flag = torch.full((4,), float(condition == "true")).cuda()  # made on the host, so that it can be read
    for _ in range(3):
        loss = model(example, flag)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def export(name: str):
    import torch

    import models

    with torch.device("meta"):
        program = torch.export.export(models.MODELS[name](), (models.EXAMPLES[name](), torch.zeros(4)))
    torch.export.save(program, FOLDER / f"models/{name}.pt2")


def record(name: str, condition: str, metaprof: str) -> list:
    return phases_of_run(metaprof, [sys.executable, __file__, "--train", name, "--condition", condition])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--metaprof", default="build/release/cli/metaprof")
    arguments.add_argument("--train", help=argparse.SUPPRESS)
    arguments.add_argument("--condition", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.train:
        return train(given.train, given.condition)
    import torch

    import models

    out = FOLDER / "recorded.json"
    known = models_of(out)
    for name in given.names or models.MODELS:
        export(name)
        known[name] = {condition: record(name, condition, given.metaprof) for condition in ("true", "false")}
        print(name, file=sys.stderr)
    write_models(out, known, torch.__version__)


if __name__ == "__main__":
    main()
