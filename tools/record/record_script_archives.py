#!/usr/bin/env python3
"""Records what archives of torch.jit.save take on an emulated H200, for tests/data/torchscript.

    tools/record/record_script_archives.py [NAME ...] --metaprof build/release/cli/metaprof

Needs PyTorch 2.11 and torchvision. Every model of tests/data/torchscript/models.py is saved (NAME.pt, without its
weights, which metaprof does not read), loaded, and run: two steps of SGD by the interpreter (train) and by the
specialising executor (train_graph), and two calls in inference mode by the interpreter (eval). peaks.json has the
allocator's peaks of each, allocated and reserved. Names keep what was recorded before."""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/data/torchscript"
sys.path.insert(0, str(FOLDER))
HOWS = ("train", "train_graph", "eval")
DTYPES = {"f32": "float32", "i64": "int64"}


def run(archive: str, inputs: dict, how: str):
    """In a process on the emulated device."""
    import torch

    torch._C._jit_set_profiling_executor(False)
    torch._C._jit_set_profiling_mode(False)
    model = torch.jit.load(archive).cuda().train(how != "eval")
    made = {
        name: torch.zeros(given[1], dtype=getattr(torch, DTYPES[given[0]]), device="cuda")
        if isinstance(given, list)
        else given
        for name, given in inputs.items()
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    interpreted = contextlib.nullcontext() if how == "train_graph" else torch.jit.optimized_execution(False)
    with interpreted, torch.inference_mode(how == "eval"):
        for _ in range(2):
            loss = model(**made)
            if how != "eval":
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
    print("PEAKS", json.dumps([torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()]))


def without_weights(archive: pathlib.Path, out: pathlib.Path):
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as small:
        for name in sorted(whole.namelist()):
            inner = name.split("/", 1)[1]
            if inner.startswith(("code/", "constants")) and not inner.endswith(".debug_pkl") or inner == "data.pkl":
                small.writestr(zipfile.ZipInfo(name), whole.read(name), zipfile.ZIP_DEFLATED)


def record(name: str, metaprof: str) -> dict:
    import models

    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder) / f"{name}.pt"
        model, inputs = models.scripted(name)
        model.save(str(archive))
        without_weights(archive, FOLDER / f"{name}.pt")
        peaks = {}
        for how in HOWS:
            program = [sys.executable, __file__, "--run", str(archive), "--inputs", json.dumps(inputs), "--how", how]
            command = [metaprof, "run", "--device", "h200", "--workspaces", "none", "--", *program]
            lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
            (line,) = [line for line in lines if line.startswith("PEAKS ")]
            peaks[how] = json.loads(line.removeprefix("PEAKS "))
        texts = [
            f"{key}={given[0]}{given[1]}".replace(" ", "") if isinstance(given, tuple) else f"{key}={given}"
            for key, given in inputs.items()
        ]
        return {"inputs": texts, **peaks}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--metaprof", default="build/release/cli/metaprof")
    arguments.add_argument("--run", help=argparse.SUPPRESS)
    arguments.add_argument("--inputs", help=argparse.SUPPRESS)
    arguments.add_argument("--how", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.run:
        return run(given.run, json.loads(given.inputs), given.how)
    import torch

    import models

    out = FOLDER / "peaks.json"
    known = json.loads(out.read_text())["models"] if out.exists() else {}
    for name in given.names or models.NAMES:
        known[name] = record(name, given.metaprof)
        print(name, known[name], file=sys.stderr)
        lines = [f"  {json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
        header = f'"torch": "{torch.__version__}", "device": "h200", "optimizer": "sgd", "steps": 2'
        out.write_text("{" + header + ',\n "models": {\n' + ",\n".join(lines) + "\n }}\n")


if __name__ == "__main__":
    main()
