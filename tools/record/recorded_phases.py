"""What `metaprof run` says of a program's phases, and the files of evidence that hold it by model."""
import json
import pathlib
import subprocess
import tempfile


def phases_of_run(metaprof: str, program: list) -> list:
    """The allocator's statistics of each phase, of a program that runs on an emulated H200 without cuDNN's workspaces."""
    with tempfile.TemporaryDirectory() as folder:
        report = f"{folder}/report.json"
        command = [metaprof, "run", "--device", "h200", "--workspaces", "none", "--json", report, "--", *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (rank,) = json.loads(pathlib.Path(report).read_text())["ranks"]
    return [
        {
            "phase": phase["phase"],
            "step": phase.get("step") or 0,
            "allocated": [phase["allocated_bytes"]["current"], phase["allocated_bytes"]["peak"]],
            "reserved": [phase["reserved_bytes"]["current"], phase["reserved_bytes"]["peak"]],
        }
        for phase in rank["phases"]
    ]


def models_of(file: pathlib.Path) -> dict:
    """What was recorded before."""
    return json.loads(file.read_text())["models"] if file.exists() else {}


def write_models(file: pathlib.Path, models: dict, torch_version: str):
    """A line a model, three steps of SGD each."""
    lines = [f"  {json.dumps(name)}: {json.dumps(models[name])}" for name in sorted(models)]
    header = f'"torch": "{torch_version}", "device": "h200", "optimizer": "sgd", "steps": 3'
    file.write_text("{" + header + ',\n "models": {\n' + ",\n".join(lines) + "\n }}\n")
