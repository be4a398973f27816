"""A callback for Lightning: before the first step it says what the training will take.

    trainer = Trainer(..., callbacks=[MetaprofCallback(device="rtx4090")])
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Iterator, Optional

try:
    from lightning.pytorch import Callback
except ImportError:  # under its earlier name
    from pytorch_lightning import Callback

from .._api import profile
from .._results import Profile
from ._device import device_of


def _autocast(precision: str) -> Any:
    """Of a trainer's precision: "bf16-mixed", "16-mixed"; others convert the module, or change nothing."""
    import torch

    dtype = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(precision)
    return contextlib.nullcontext() if dtype is None else torch.autocast("cuda", dtype)


def _step(precision: str, module: Any, *optimizers_and_batch: Any) -> None:
    *optimizers, batch = optimizers_and_batch
    with _autocast(precision):
        output = module.training_step(batch, 0)
    loss = output["loss"] if isinstance(output, dict) else output
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


@contextlib.contextmanager
def _without_log(module: Any) -> Iterator[None]:
    """The step that is captured is none of the trainer's: it logs nothing."""
    for name in "log", "log_dict":
        setattr(module, name, lambda *args, **kwargs: None)
    try:
        yield
    finally:
        for name in "log", "log_dict":
            delattr(module, name)


class MetaprofCallback(Callback):
    """`device`: a card; else the one that is here. `stop`: a step that does not fit is a MemoryError before the first one runs.
    `options`: as of metaprof.profile. Afterwards `profile` is the result. The step is training_step, backward and the optimizers,
    in the trainer's precision and without accumulation; gradients of "16-mixed" are not scaled."""

    def __init__(self, device: Optional[str] = None, stop: bool = False, **options: Any):
        self.device, self.stop, self.options = device, stop, options
        self.profile: Optional[Profile] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        import torch

        random = torch.random.get_rng_state()
        batch = next(iter(trainer.train_dataloader))
        torch.random.set_rng_state(random)
        step = functools.partial(_step, str(trainer.precision), pl_module, *trainer.optimizers)
        step.__name__ = type(pl_module).__name__  # type: ignore[attr-defined]  # as reports call it
        with _without_log(pl_module):
            self.profile = profile(step, (batch,), device=device_of(self.device), **self.options)
        print(f"metaprof: {self.profile}", file=sys.stderr)
        if self.stop and not self.profile.fits:
            raise MemoryError(f"metaprof: {self.profile}")
