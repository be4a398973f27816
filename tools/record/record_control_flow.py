#!/usr/bin/env python3
"""Records what models with torch.cond, while_loop, scan and map take on an emulated H200, for tests/data/control_flow.

    tools/record/record_control_flow.py [NAME ...] --metaprof build/release/cli/metaprof

Needs PyTorch 2.11. Every model of tests/data/control_flow/models.py is exported (models/NAME.pt2), and run: three steps of SGD (train), and three
calls without gradients (no-grad), once for each way that data can decide. recorded.json has the allocator's statistics by phase. Names keep what
was recorded before."""
import argparse
import pathlib
import sys

from recorded_phases import models_of, phases_of_run, write_models

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/control_flow"
sys.path.insert(0, str(FOLDER))
MODES = ("train", "no-grad")
STEPS = 3


def run(name: str, mode: str, way: str):
    """In a process on the emulated device."""
    import torch

    import models

    model = models.MODELS[name]().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = models.EXAMPLES[name]().cuda()
    data = [torch.full((4,), float(models.WAYS[name][way])).cuda()]  # made on the host, so that it can be read
    with torch.set_grad_enabled(mode == "train"):
        for _ in range(STEPS + (mode != "train")):
            loss = model(example, *data)
            if mode == "train":
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()


def export(name: str):
    import torch

    import models

    with torch.device("meta"):
        program = torch.export.export(models.MODELS[name](), (models.EXAMPLES[name](), torch.zeros(4)))
    torch.export.save(program, FOLDER / f"models/{name}.pt2")


def record(name: str, mode: str, way: str, metaprof: str) -> list:
    phases = phases_of_run(metaprof, [sys.executable, __file__, "--run", name, "--mode", mode, "--way", way])
    if mode == "train":
        return phases
    # The last call is over when the program is, not when the next one begins. A run without an optimizer has no steps.
    return [phase | {"step": max(0, index - 1)} for index, phase in enumerate(phases[:-1])]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--metaprof", default="build/release/cli/metaprof")
    arguments.add_argument("--run", help=argparse.SUPPRESS)
    arguments.add_argument("--mode", help=argparse.SUPPRESS)
    arguments.add_argument("--way", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.run:
        return run(given.run, given.mode, given.way)
    import torch

    import models

    out = FOLDER / "recorded.json"
    known = models_of(out)
    for name in given.names or models.MODELS:
        export(name)
        known[name] = {
            mode: {way: record(name, mode, way, given.metaprof) for way in models.WAYS[name]} for mode in MODES
        }
        print(name, file=sys.stderr)
        write_models(out, known, torch.__version__)


if __name__ == "__main__":
    main()
