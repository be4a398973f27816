"""Tests of a model's memory: `pytest -p metaprof.integrations.testing --metaprof-device rtx4090 test_memory.py`.

The first time, --metaprof-accept writes step.json."""
import torch

MODEL = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10))
BATCH = torch.empty(32, 256), torch.zeros(32, dtype=torch.int64)


def test_a_step_fits_the_card(metaprof_fits):
    assert metaprof_fits(MODEL, BATCH, optimizer="adamw").fits


def test_a_step_takes_no_more_than_before(metaprof_baseline):
    metaprof_baseline("step.json", MODEL, BATCH, optimizer="adamw")
