"""Models of the zoo in Python's door and in a run: every phase of three training steps must have the same statistics of the allocator.

    METAPROF=build/release/cli/metaprof METAPROF_ZOO="timm:20 transformers:20" METAPROF_TORCH_PYTHON=… zoo_test.py

Without METAPROF_ZOO a few are compared. With it so many of each library, drawn by METAPROF_ZOO_SEED [1]. Prints a table. A model that the run
cannot run is not counted; one with more parameters than LARGEST is left out.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FEW = ["torchvision:resnet18", "torchvision:mobilenet_v3_small", "timm:convnext_zepto_rms_ols", "transformers:BertForMaskedLM",
       "transformers:LlamaForCausalLM", "transformers:T5ForConditionalGeneration"]
STATISTICS = ("allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes", "allocation", "segment")
LARGEST = 60_000_000
SKIPPED = 77
RUN_SECONDS = 240


def names():
    import zoo
    asked = os.environ.get("METAPROF_ZOO")
    if not asked:
        return FEW
    seed = int(os.environ.get("METAPROF_ZOO_SEED", "1"))
    return [name for word in asked.split() for name in zoo.drawn(word.partition(":")[0], int(word.partition(":")[2]), seed)]


def recorded(name, folder):
    """The phases of a run on the emulated device; None: the program fails there."""
    path = os.path.join(folder, "run.json")
    try:
        done = subprocess.run([os.environ["METAPROF_PROGRAM"], "run", "--device", "h100", "--json", path, "--", sys.executable, str(HERE / "step.py"), name],
                              capture_output=True, text=True, timeout=RUN_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode or not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)["ranks"][0]["phases"]


def of_phase(phases):
    return {(row["phase"], row.get("step")): {name: row.get(name) for name in STATISTICS} for row in phases}


def compare(name, folder):
    """(verdict, text) of a model."""
    import metaprof
    import torch
    import zoo
    try:
        with torch.device("meta"):
            size = sum(each.numel() for each in zoo.made(name)[0].parameters())
        if size > LARGEST:
            return "too large", f"{size} parameters"
        torch.manual_seed(0)
        module, args, kwargs = zoo.made(name)
    except Exception as error:  # noqa: BLE001 - the zoo's sizes do not suit it
        return "not made", repr(error)[:80]
    phases = recorded(name, folder)
    if phases is None:
        return "no run", ""
    before = time.monotonic()
    try:
        ours = of_phase(metaprof.profile(module, args, kwargs=kwargs, device="h100").phases)
    except metaprof.Error as error:
        return "refused", str(error)[:150]
    seconds, run = time.monotonic() - before, of_phase(phases)
    # Reports of runs may have statistics that estimates have not.
    equal = sum(phase in ours and all(ours[phase][key] in (None, value) for key, value in run[phase].items()) for phase in run)
    peak, other = (max(row["allocated_bytes"]["peak"] for row in rows.values()) for rows in (run, ours))
    return "equal" if equal == len(run) else "different", f"{equal} of {len(run)} phases, peak {peak} {other}, {seconds:.1f} s"


def main():
    try:
        import torch  # noqa: F401
    except ImportError:
        print("skipped: METAPROF_TORCH_PYTHON names no Python with PyTorch")
        return SKIPPED
    found = {}
    for name in names():
        with tempfile.TemporaryDirectory() as folder:
            verdict, text = compare(name, folder)
        found.setdefault(verdict, []).append(name)
        print(f"{name:55} {verdict:10} {text}", flush=True)
    print(", ".join(f"{len(some)} {verdict}" for verdict, some in found.items()))
    return 1 if found.get("refused") or found.get("different") or not found.get("equal") else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    python = os.environ.get("METAPROF_TORCH_PYTHON")
    if python and not os.environ.get("METAPROF_ZOO_RUNS"):
        os.execve(python, [python, __file__], {**os.environ, "METAPROF_ZOO_RUNS": "1"})
    sys.exit(main())
