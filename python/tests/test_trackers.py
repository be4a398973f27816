"""Figures in experiment trackers: their own files are read again."""

import json

import pytest

import metaprof
from metaprof.integrations import trackers


@pytest.fixture(scope="module")
def estimate():
    return metaprof.profile("gpt2", device="a100", optimizer="sgd")


def test_metrics_are_those_of_the_report(estimate):
    metrics, options = trackers.metrics(estimate), trackers.options(estimate)
    assert metrics["metaprof/peak/reserved_bytes"] == estimate.json["peak"]["reserved_bytes"]
    assert metrics["metaprof/peak/activation_bytes"] == estimate.json["peak"]["by_category"]["activation"]
    assert metrics["metaprof/flops/forward"] == estimate.json["flops"]["forward"] and metrics["metaprof/fits"] == 1
    assert options["metaprof/device"] == "a100" and options["metaprof/optimizer"] == "sgd"


def test_mlflow_keeps_them(estimate, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file:{tmp_path / 'mlruns'}")
    with mlflow.start_run() as run:
        trackers.log_to_mlflow(estimate)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.metrics == trackers.metrics(estimate) and kept.params["metaprof/optimizer"] == "sgd"
    report, = tmp_path.rglob("metaprof.json")
    assert json.loads(report.read_text())["peak"] == estimate.json["peak"]


def test_wandb_keeps_them_offline(estimate, tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="Weights & Biases is not here")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="metaprof", dir=str(tmp_path)) as run:
        trackers.log_to_wandb(estimate)
        assert run.summary["metaprof/peak/reserved_bytes"] == estimate.peak.reserved
        assert run.config["metaprof/device"] == "a100"
    with pytest.raises(ValueError, match="wandb.init"):
        trackers.log_to_wandb(estimate)


def test_tensorboard_keeps_them(estimate, tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not here")
    pytest.importorskip("torch", reason="PyTorch is not here")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        trackers.log_to_tensorboard(estimate, writer, step=3)
    events = EventAccumulator(str(tmp_path)).Reload()
    scalar, = events.Scalars("metaprof/peak/reserved_bytes")
    assert (scalar.step, scalar.value) == (3, pytest.approx(estimate.peak.reserved, rel=1e-6))  # a float of 32 bits


class Writer:
    def __init__(self):
        self.scalars, self.texts = {}, {}

    def add_scalar(self, name, value, step):
        self.scalars[name, step] = value

    def add_text(self, name, text, step):
        self.texts[name, step] = text


def test_any_writer_of_scalars_will_do(estimate):
    writer = Writer()
    trackers.log_to_tensorboard(estimate, writer)
    assert writer.scalars["metaprof/peak/allocated_bytes", 0] == estimate.peak.allocated
    assert "metaprof/optimizer: sgd" in writer.texts["metaprof/options", 0]
