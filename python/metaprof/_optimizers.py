"""The optimizer of captured steps."""

from __future__ import annotations

import contextlib
import copy
from collections import defaultdict
from typing import Any, Callable, Iterator, Optional


class Placeholder:
    """In the place of an optimizer that has only a name: the program says whose parameters it has, and the command line what it does."""

    def __init__(self, made: Any, parameters: list[Any]):
        self.param_groups = [{"params": parameters}]
        self._marks = made.capture.optimizers
        self._marks.begin()
        self._marks.end(self, "made")

    def step(self) -> None:
        self._marks.begin()
        self._marks.end(self, "step")


def is_optimizer(value: Any) -> bool:
    import torch

    return isinstance(value, torch.optim.Optimizer)


def of_stand_ins(optimizer: Any, parameter: Callable[[Any], Optional[Any]], on_device: Callable[[Any], Any]) -> Any:
    """An optimizer like the user's, of other parameters. What it keeps of the user's parameters it keeps of these, on the device.

    `parameter`: what stands for a parameter of the user's; None: nothing, it is none of the module's.
    """
    made = copy.copy(optimizer)
    made.param_groups = [{**group, "params": [parameter(each) for each in group["params"]]} for group in optimizer.param_groups]
    if any(each is None for group in made.param_groups for each in group["params"]):
        raise ValueError("the optimizer has a parameter that is none of the module's")
    made.state = defaultdict(dict)
    for each, state in optimizer.state.items():
        made.state[parameter(each)] = {name: on_device(value) for name, value in state.items()}
    return made


@contextlib.contextmanager
def exchanged(optimizers: list[Any], parameter: Callable[[Any], Optional[Any]], on_device: Callable[[Any], Any]) -> Iterator[None]:
    """The user's own optimizers have the parameters of stand-ins, for a while."""
    kept = [(each, dict(vars(each))) for each in optimizers]
    try:
        for each in optimizers:
            vars(each).update(vars(of_stand_ins(each, parameter, on_device)))
        yield
    finally:
        for each, attributes in kept:
            vars(each).clear()
            vars(each).update(attributes)
