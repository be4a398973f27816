"""A callback for the Trainer of transformers: before the first step it says what the training will take.

    trainer = Trainer(..., callbacks=[MetaprofCallback(device="rtx4090")])
"""

from __future__ import annotations

import sys
from typing import Any, Optional

from transformers import TrainerCallback

from .._api import profile
from .._results import Profile
from ._device import device_of


class MetaprofCallback(TrainerCallback):
    """`device`: a card; else the one that is here. `stop`: a step that does not fit is a MemoryError before the first one runs.
    `options`: as of metaprof.profile. Afterwards `profile` is the result."""

    def __init__(self, device: Optional[str] = None, stop: bool = False, **options: Any):
        self.device, self.stop, self.options = device, stop, options
        self.profile: Optional[Profile] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, optimizer: Any = None, train_dataloader: Any = None, **others: Any) -> None:
        import torch

        random = torch.random.get_rng_state()  # a loader draws its seed where it begins
        batch = dict(next(iter(train_dataloader)))
        torch.random.set_rng_state(random)
        options = {"precision": "amp-bf16" if args.bf16 or args.fp16 else "fp32", **self.options}
        if args.gradient_accumulation_steps > 1:
            options.setdefault("accumulate", args.gradient_accumulation_steps)
        if args.max_grad_norm:
            options.setdefault("clip_norm", args.max_grad_norm)
        own = getattr(optimizer, "optimizer", optimizer)  # of accelerate's wrapper
        self.profile = profile(model, batch, device=device_of(self.device), optimizer=own or "adamw", **options)
        note = " (fp16 is taken as bf16: its scaling of gradients is not followed)" if args.fp16 else ""
        print(f"metaprof: {self.profile}{note}", file=sys.stderr)
        if self.stop and not self.profile.fits:
            raise MemoryError(f"metaprof: {self.profile}")
