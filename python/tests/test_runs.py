"""Programs and functions that run on an emulated device."""

import json
import os
import re
import subprocess
import sys

import pytest

import metaprof

torch = pytest.importorskip("torch", reason="PyTorch is not here")
pytestmark = pytest.mark.skipif(torch.version.cuda is None, reason="this PyTorch is built without CUDA")

# Three steps of a linear layer of 64·10 + 10 parameters, each in a block of a multiple of 512 bytes.
PROGRAM = """
import torch
model = torch.nn.Linear(64, 10).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_a_program_is_run(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    result = metaprof.run([str(program)], device="h200", steps=1)
    assert result.exit_status == 0 and result.fits
    assert result.peak.by_category["parameter"] == 4 * (640 + 10)
    assert [row.type for row in result.modules] == ["Linear"]
    assert "train.py" in result._repr_html_()


# Activations that are freed in pieces: what is reserved at most is more than the step must have.
UNEVEN = """
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for rows in 3000, 5000, 8000:
    optimizer.zero_grad()
    model(torch.zeros(rows, 1024, device="cuda")).sum().backward()
    optimizer.step()
"""


def test_the_least_memory_is_enough_and_less_is_not(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(UNEVEN)
    free = metaprof.run([str(program)], device="l40s").json["ranks"][0]
    least = free["runs_from_bytes"]
    assert free["peak"]["allocated_bytes"] <= least < free["peak"]["reserved_bytes"]
    for less, fits in (0, True), (2 << 20, False):
        memory = least + free["outside_allocator"]["context"] - less
        assert bool(metaprof.run([str(program)], device="l40s", memory=f"{memory}B").fits) == fits


# 64 MiB in a part that the program names, and less in its steps.
NAMED = """
import metaprof, torch

@metaprof.phase("count")
def count():
    return torch.ones(1 << 22, device="cuda").sum()

with metaprof.phase("build the index"):
    index = torch.empty(1 << 24, device="cuda")
del index
model = torch.nn.Linear(64, 10).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    model(torch.zeros(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    count()
"""


def test_phases_of_a_programs_own(tmp_path, monkeypatch):
    program = tmp_path / "train.py"
    program.write_text(NAMED)
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(metaprof.__file__)))
    result = metaprof.run([str(program)], device="h200")
    peaks = {row["phase"]: row["allocated_bytes"]["peak"] for row in result.ranks[0]["phases"]}
    assert peaks["build the index"] == 1 << 26
    assert peaks["count"] >= 1 << 24


def test_phases_do_nothing_elsewhere(monkeypatch):
    monkeypatch.delenv("METAPROF_RECORD", raising=False)

    @metaprof.phase("count")
    def count():
        return 3

    with metaprof.phase("anything"):
        assert count() == 3


def test_runs_together_on_one_card(tmp_path):
    program, report = tmp_path / "train.py", tmp_path / "run.json"
    program.write_text(UNEVEN)
    alone = metaprof.run([str(program)], device="l40s").json
    report.write_text(json.dumps(alone))
    done = subprocess.run([metaprof.program_path(), "together", str(report), str(report), "--json", "-"], capture_output=True, text=True)
    rank, both = alone["ranks"][0], json.loads(done.stdout)
    assert both["device"] == "l40s" and both["fits"]
    assert both["takes_bytes"] == 2 * (rank["peak"]["reserved_bytes"] + rank["outside_allocator"]["context"])
    assert both["least_bytes"] == 2 * (rank["runs_from_bytes"] + rank["outside_allocator"]["context"])


def test_what_cannot_be_run_is_an_error(tmp_path):
    with pytest.raises(metaprof.Error, match="no-such-program"):
        metaprof.run([str(tmp_path / "no-such-program")])
    nothing = tmp_path / "nothing.py"
    nothing.write_text("print(1)")
    with pytest.raises(metaprof.Error, match="PyTorch|torch"):
        metaprof.run([str(nothing)])


def test_a_function_is_captured_and_run_again_with_other_options():
    pytest.importorskip("cloudpickle", reason="cloudpickle is not here")

    @metaprof.capture(steps=1, device="rtx4090")
    def train(batch):
        model = torch.nn.Linear(64, 10).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(batch, 64, device="cuda")).sum().backward()
            optimizer.step()

    step = train(8)
    assert isinstance(step, metaprof.Captured) and train.__name__ == "train"
    assert step.peak.by_category["parameter"] == 4 * (640 + 10)
    assert step.json["device"] == "rtx4090"
    assert metaprof.profile(step, device="rtx4090").parameters == 650
    sgd = metaprof.profile(step, device="rtx4090", optimizer="sgd")
    assert sgd.peak.by_category["optimizer_state"] == 0


def test_a_function_that_fails_says_so():
    pytest.importorskip("cloudpickle", reason="cloudpickle is not here")

    @metaprof.capture
    def train():
        raise ValueError("the function's own")

    with pytest.raises(metaprof.Error) as error:
        train()
    assert not re.search("Traceback", str(error.value))


# A step that is watched, beside 1 MiB for something else; then one with calls that the estimate is not told of.
WATCHED = """
import metaprof, torch

other = torch.empty(1 << 18, device="cuda")
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.zeros(256, 512, device="cuda"), torch.zeros(256, 512, device="cuda")
backward = torch.autograd.backward
watched = metaprof.watch(model, (x, y), optimizer=optimizer)
print(watched)
for _ in range(2):
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
assert torch.autograd.backward is backward and not model._forward_pre_hooks
print(watched, watched.first_difference, sep="\\n")

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
watched = metaprof.watch(model, (x, y), optimizer=optimizer)
torch.nn.functional.mse_loss(model(x).exp().log(), y).backward()
optimizer.step()
print(watched.first_difference)
"""


def test_a_step_is_watched(tmp_path, capfd):
    program = tmp_path / "train.py"
    program.write_text(WATCHED)
    assert metaprof.run([sys.executable, str(program)], device="h200").exit_status == 0
    lines = capfd.readouterr().out.splitlines()
    assert any("no step has run yet" in line for line in lines)
    rows = [line.split() for line in lines if line.startswith(("forward ", "backward ", "optimizer "))]
    assert [row[0] for row in rows] == ["forward", "backward", "optimizer"]
    assert all(row[1] == row[2] and row[3] == "none" for row in rows), rows
    assert "1.0 MiB were allocated for other things before the step, and are not counted" in lines
    assert lines[lines.index("1.0 MiB were allocated for other things before the step, and are not counted") + 1] == "None"
    assert "forward" in lines


def test_inputs_that_are_on_the_device_count_once(tmp_path, capfd):
    program = tmp_path / "train.py"
    program.write_text("""
import metaprof, torch
for device in "cpu", "cuda":
    model = torch.nn.Linear(256, 256).to(device)
    inputs = torch.zeros(512, 256, device=device), torch.zeros(512, 256, device=device)
    print("setup", metaprof.profile(model, inputs).phases[0]["allocated_bytes"]["current"])
""")
    metaprof.run([sys.executable, str(program)], device="h200")
    assert capfd.readouterr().out.count(f"setup {4 * (256 * 256 + 256 + 2 * 512 * 256)}") == 2


def test_without_a_gpu_nothing_is_watched():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    model = torch.nn.Linear(4, 3)
    with pytest.raises(metaprof.Error, match="metaprof.watch measures a step on a GPU, and there is none"):
        metaprof.watch(model, (torch.zeros(2, 4), torch.zeros(2, 3)), optimizer=torch.optim.SGD(model.parameters()))
