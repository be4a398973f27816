#!/usr/bin/env python3
"""How much faster an estimate is than PyTorch's own: FakeTensorMode with MemTracker, side by side on this machine.

    tests/bench/against_memtracker.py [--python PYTHON] [--peer run_memtracker.py] [--device cpu] [MODEL …]

Both run two steps with AdamW. Ours is read_pt2 + run_steps + the allocator's statistics (bench_steps); the peer's
is building the module and running the steps on fake tensors, without its imports. CPU seconds of one core are
compared, so that a busy machine disturbs neither. Where PYTHON has no torch, or the peer's script is not there,
that is said and the exit status is 0.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ours(models):
    command = [ROOT / "build/release/bench/bench_steps", "--benchmark_format=json", "--benchmark_min_time=1",
               "--benchmark_filter=^(" + "|".join(models) + ")/steps:2$"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {b["name"].split("/")[0]: b["cpu_time"] / 1000 for b in json.loads(run.stdout)["benchmarks"]}


def peers(python, script, model, device):
    run = subprocess.run([python, script, model, "--device", device], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{script} {model}: {run.stderr.strip().splitlines()[-1]}")
    return sum(json.loads(run.stdout.strip().splitlines()[-1])["cpu_seconds"].values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["resnet50", "gpt2", "llama_3_2_1b"])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peer", default=str(ROOT.parent / "shared/tools/peers/run_memtracker.py"))
    parser.add_argument("--device", default="cpu", help="cuda needs a GPU that PyTorch can see")
    options = parser.parse_args()
    if not pathlib.Path(options.peer).exists():
        return print(f"skipped: {options.peer} is not there")
    if subprocess.run([options.python, "-c", "import torch"], capture_output=True).returncode != 0:
        return print(f"skipped: {options.python} has no torch")
    print(f"{'model':14}{'metaprof, ms':>14}{'MemTracker, ms':>16}{'ratio':>8}")
    for model, seconds in ours(options.models).items():
        peer = peers(options.python, options.peer, model, options.device)
        print(f"{model:14}{1000 * seconds:14.1f}{1000 * peer:16.0f}{peer / seconds:8.0f}")


if __name__ == "__main__":
    main()
