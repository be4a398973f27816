"""Programs and functions that run on an emulated device."""

import json
import os
import re
import subprocess

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
