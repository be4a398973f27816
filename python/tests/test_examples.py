"""The examples run, and say what the library says."""

import csv
import json
import os
import subprocess
import sys

import pytest

import metaprof

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
CONFIG = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 100, "n_positions": 32}


def environment():
    folder = os.path.dirname(os.path.dirname(metaprof.__file__))
    return {**os.environ, "PYTHONPATH": folder, "METAPROF_PROGRAM": metaprof.program_path()}


def test_ray_maps_profiles_over_two_workers(tmp_path):
    pytest.importorskip("ray", reason="Ray is not here")
    config, table = tmp_path / "config.json", tmp_path / "grid.csv"
    config.write_text(json.dumps(CONFIG))
    subprocess.run([sys.executable, os.path.join(ROOT, "examples", "ray_sweep.py"), str(config), "--workers", "2", "--device",
                    "t4,rtx4090", "--batch", "1:3", "--sequence", "16", "--optimizer", "sgd,best", "--csv", str(table)],
                   check=True, env=environment(), timeout=300)
    rows = list(csv.DictReader(table.open()))
    assert [(row["device"], row["optimizer"], row["batch"]) for row in rows] == [
        (device, optimizer, batch) for device in ("t4", "rtx4090") for optimizer in ("sgd", "best") for batch in "123"]
    sweep = metaprof.sweep(config, device=["t4", "rtx4090"], batch=[1, 2, 3], sequence=16, optimizer="sgd").rows
    assert [int(row["peak_allocated_bytes"]) for row in rows if row["optimizer"] == "sgd"] == [
        row["peak_allocated_bytes"] for row in sweep]
    assert all("best" in row["error"] for row in rows if row["optimizer"] == "best")


def outputs(notebook):
    """What the cells show, as text: pictures and tables of notebooks have none that two versions would share."""
    return [each["data"]["text/plain"] for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs
            if "data" in each and "text/html" not in each["data"]]


NOTEBOOKS = {"names_and_files.ipynb": (), "three_models.ipynb": ("torch", "torchvision", "timm", "transformers"), "cell.ipynb": ("torch",),
             "trainer_callback.ipynb": ("torch", "transformers", "accelerate"), "lightning_callback.ipynb": ("torch", "lightning")}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_it_shows(name):
    for module in (*NOTEBOOKS[name], "nbclient", "ipykernel"):
        pytest.importorskip(module, reason=f"{module} is not here")
    import nbformat
    from nbclient import NotebookClient

    folder = os.path.join(ROOT, "examples", "notebooks")
    kept = nbformat.read(os.path.join(folder, name), as_version=4)
    code = [line for cell in kept.cells if cell.cell_type == "code" for line in cell.source.splitlines() if line]
    assert len(code) <= 12, "lines that a user writes"
    run = nbformat.from_dict(json.loads(json.dumps(kept)))
    NotebookClient(run, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}).execute(env=environment())
    assert outputs(run) == outputs(kept)


CALLBACKS = {"hugging_face.py": (("transformers", "accelerate"), "72826880 bytes at the peak, in backward"),
             "lightning_module.py": (("lightning",), "23592448 bytes at the peak, in optimizer")}


@pytest.mark.parametrize("name", CALLBACKS)
def test_a_trainer_with_a_callback(name, tmp_path):
    needed, said = CALLBACKS[name]
    for module in ("torch", *needed):
        pytest.importorskip(module, reason=f"{module} is not here")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "callbacks", name)], cwd=tmp_path, env=environment(), capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "metaprof: FITS rtx4090: " in done.stderr and done.stdout.splitlines()[-1] == said


def test_tests_of_memory(tmp_path):
    pytest.importorskip("torch", reason="torch is not here")
    test = tmp_path / "test_memory.py"
    test.write_text(open(os.path.join(ROOT, "examples", "callbacks", "test_memory.py")).read())
    words = [sys.executable, "-m", "pytest", "-q", "-p", "metaprof.integrations.testing", "--metaprof-device", "rtx4090", str(test)]
    for more in (["--metaprof-accept"], []):  # the first time writes the baseline
        done = subprocess.run([*words, *more], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
    assert (tmp_path / "step.json").exists()
