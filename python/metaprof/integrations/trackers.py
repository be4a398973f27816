"""Logs the figures of a profile to experiment trackers, beside those of the training run.

    from metaprof.integrations import trackers

    estimate = metaprof.profile(model, (x, labels), device="a100")
    trackers.log_to_mlflow(estimate)                  # the active run
    trackers.log_to_wandb(estimate)                   # wandb.run, also offline
    trackers.log_to_tensorboard(estimate, writer)     # a torch.utils.tensorboard.SummaryWriter, or another one with add_scalar
"""

from __future__ import annotations

from typing import Any, Optional

from .._results import Profile

PREFIX = "metaprof/"


def metrics(estimate: Profile) -> dict[str, float]:
    """What is logged, by name. Bytes and FLOPs; `fits` is 1 or 0."""
    peak, verdict = estimate.peak, estimate.json["verdict"]
    figures = {
        "peak/allocated_bytes": peak.allocated, "peak/reserved_bytes": peak.reserved, "outside_allocator_bytes": verdict["outside_bytes"],
        "device_memory_bytes": verdict["memory_bytes"], "saved_bytes": estimate.saved_bytes, "parameters": estimate.parameters,
        "fits": int(bool(estimate.fits)), **{f"peak/{name}_bytes": count for name, count in peak.by_category.items()},
        **{f"flops/{part}": count for part, count in estimate.flops.items()}}
    return {PREFIX + name: float(value) for name, value in figures.items()}


def options(estimate: Profile) -> dict[str, Any]:
    """The device and the options of the estimate, by name."""
    return {PREFIX + "device": estimate.json["device"], **{PREFIX + name: value for name, value in estimate.json["options"].items()}}


def log_to_mlflow(estimate: Profile) -> None:
    """Metrics, parameters, and the report as an artifact of MLflow's active run (which is begun if there is none)."""
    import mlflow

    mlflow.log_metrics(metrics(estimate))
    mlflow.log_params(options(estimate))
    mlflow.log_dict(estimate.json, "metaprof.json")


def log_to_wandb(estimate: Profile, run: Optional[Any] = None) -> None:
    """Metrics in the summary and options in the configuration of a run of Weights & Biases; without `run`, of wandb.run. Errors: there is none."""
    if run is None:
        import wandb

        run = wandb.run
    if run is None:
        raise ValueError("no run of Weights & Biases: call wandb.init first, or give run=")
    run.summary.update(metrics(estimate))
    run.config.update(options(estimate))


def log_to_tensorboard(estimate: Profile, writer: Any, step: int = 0) -> None:
    """A scalar for each metric, and the options as a text."""
    for name, value in metrics(estimate).items():
        writer.add_scalar(name, value, step)
    writer.add_text(PREFIX + "options", "\n".join(f"    {name}: {value}" for name, value in options(estimate).items()), step)
