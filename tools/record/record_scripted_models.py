#!/usr/bin/env python3
"""Records what PyTorch's graph executor does with scripted models on an emulated H200, for tests/data/graph_executor.

    tools/record/record_scripted_models.py [NAME ...] --metaprof build/release/cli/metaprof

Needs PyTorch 2.11. Every model of tests/data/graph_executor/models.py is exported (models/NAME.pt2), scripted, and run
for three steps of SGD by the specialising executor. scripted.json has for each the allocator's statistics by phase, and
what its plans fused and batched: of the forward, and of the gradients. Names keep what was recorded before."""
import argparse
import json
import pathlib
import re
import sys
import tempfile

from recorded_phases import models_of, phases_of_run, write_models

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/graph_executor"
sys.path.insert(0, str(FOLDER))


def kernels_of(graph: str) -> list:
    """The operators of every fused kernel of a printed plan, sorted; a batch of products is one by itself."""
    kernels = [["prim::" + name] for name in re.findall(r"= prim::(MMTreeReduce|MMBatchSide)", graph)]
    for body in re.findall(r"with prim::FusionGroup_\d+ = graph\((.*?)\n  return", graph, re.DOTALL):
        names = re.findall(r"= (\w+::\w+)[\[(]", body)
        kernels.append(sorted(name for name in names if name != "prim::Constant"))
    return sorted(kernels)


def train(name: str, plans: str):
    """In a process on the emulated device."""
    import torch

    import models

    torch._C._jit_set_profiling_executor(False)
    torch._C._jit_set_profiling_mode(False)
    model = torch.jit.script(models.MODELS[name]().cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = models.example(name).cuda()
    for _ in range(3):
        loss = model(example)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    (plan,) = model.get_debug_state().execution_plans.values()
    gradients = [
        str(inner.graph)
        for state in plan.code.grad_executor_states()
        for inner in state.execution_plans.values()
    ]
    kernels = {
        "forward": kernels_of(str(plan.graph)),
        "gradients": sorted(kernel for graph in gradients for kernel in kernels_of(graph)),
    }
    pathlib.Path(plans).write_text(json.dumps(kernels))


def export(name: str):
    import torch

    import models

    with torch.device("meta"):
        model, example = models.MODELS[name](), models.example(name)
    torch.export.save(torch.export.export(model, (example,)), FOLDER / f"models/{name}.pt2")


def record(name: str, metaprof: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        plans = f"{folder}/plans.json"
        phases = phases_of_run(metaprof, [sys.executable, __file__, "--train", name, "--plans", plans])
        return {"phases": phases, **json.loads(pathlib.Path(plans).read_text())}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--metaprof", default="build/release/cli/metaprof")
    arguments.add_argument("--train", help=argparse.SUPPRESS)
    arguments.add_argument("--plans", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.train:
        return train(given.train, given.plans)
    import torch

    import models

    out = FOLDER / "scripted.json"
    known = models_of(out)
    for name in given.names or models.MODELS:
        export(name)
        known[name] = record(name, given.metaprof)
        print(name, file=sys.stderr)
    write_models(out, known, torch.__version__)


if __name__ == "__main__":
    main()
