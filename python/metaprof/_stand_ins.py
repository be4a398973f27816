"""A module whose tensors are others for a while. Afterwards it is what it was."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from typing import Any, Callable, Iterator

from ._program import Error

CONTAINERS = (dict, list, set, deque)
DEPTH = 3  # of containers within containers
DEVICE = "cuda:0"  #: where stand-ins go. Without a number PyTorch up to 2.10 asks a driver for the current device


@contextlib.contextmanager
def stand_ins(module: Any, parameter: Callable[[Any], Any], buffer: Callable[[Any], Any]) -> Iterator[Callable[[Any], Any]]:
    """Parameters and buffers are what these functions make of them; what is one tensor stays one. Gives what says which stands for which."""
    kept = [Kept(each) for each in module.modules()]
    made: dict[int, Any] = {}

    def of(tensor: Any, make: Callable[[Any], Any]) -> Any:
        if tensor is not None and id(tensor) not in made:
            made[id(tensor)] = make(tensor)
        return tensor if tensor is None else made[id(tensor)]

    try:
        for each in module.modules():
            for names, make in ((each._parameters, parameter), (each._buffers, buffer)):
                for name, tensor in names.items():
                    names[name] = of(tensor, make)
        yield lambda tensor: made.get(id(tensor))
    finally:
        for each in kept:
            each.restore()


@contextlib.contextmanager
def standing_in(torch: Any, made: Any, modules: list[Any]) -> Iterator["Standing"]:
    """Tensors of all these modules are others; gives what stands for which."""
    def parameter(tensor: Any) -> Any:
        if getattr(tensor, "_post_accumulate_grad_hooks", None):
            raise Error("a parameter has hooks that run when its gradient has grown, which belong to the parameter itself: metaprof.run, or @metaprof.capture")
        stands = torch.nn.Parameter(made.device.on_host(tensor), requires_grad=tensor.requires_grad)
        for hook in (tensor._backward_hooks or {}).values():
            hooks.append((stands, hook))
        return stands

    def buffer(tensor: Any) -> Any:
        return tensor.detach() if tensor.device.type == "cpu" else made.device.on_host(tensor)

    hooks: list[tuple[Any, Any]] = []
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(stand_ins(module, parameter, buffer)) for module in modules]
        yield Standing(found, hooks)


class Standing:
    """What stands for which tensor, and the hooks on gradients of the user's parameters."""

    def __init__(self, found: list[Callable[[Any], Any]], hooks: list[tuple[Any, Any]]):
        self._found, self._hooks = found, hooks

    def __call__(self, tensor: Any) -> Any:
        return next((other for other in (each(tensor) for each in self._found) if other is not None), None)

    def register_hooks(self) -> None:
        """To be called when the parameters are on the device."""
        for stands, hook in self._hooks:
            stands.register_hook(hook)


class Kept:
    """A module's attributes, and what the containers among them hold."""

    def __init__(self, module: Any):
        self._attributes = vars(module)
        self._contents: list[tuple[Any, Any]] = []
        self._keep(self._attributes, DEPTH)

    def _keep(self, container: Any, depth: int) -> None:
        self._contents.append((container, container.copy()))
        if depth:
            for value in list(container.values() if isinstance(container, dict) else container):
                if isinstance(value, CONTAINERS):
                    self._keep(value, depth - 1)

    def restore(self) -> None:
        """What is as it was is left alone: it may be a container that refuses changes, such as the configuration of a diffusers model."""
        for container, content in self._contents:
            if not _is_same(container, content):
                container.clear()
                container.extend(content) if isinstance(container, (list, deque)) else container.update(content)


def _is_same(container: Any, content: Any) -> bool:
    """Whether both hold the same objects in the same order."""
    def objects(one: Any) -> list[int]:
        return [id(each) for each in (itertools.chain(one.keys(), one.values()) if isinstance(one, dict) else one)]

    return len(container) == len(content) and objects(container) == objects(content)


@contextlib.contextmanager
def random_state() -> Iterator[None]:
    """Random numbers of the host that are drawn in between are drawn again afterwards."""
    import random
    import sys

    import torch

    state, python = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    numbers = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(state)
        random.setstate(python)
        if numpy is not None:
            numpy.random.set_state(numbers)
