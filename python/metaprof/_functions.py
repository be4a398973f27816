"""A function that trains: a step, which calls backward and optimizers itself."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Mapping

from ._optimizers import exchanged, is_optimizer
from ._script import STEPS
from ._stand_ins import DEVICE, standing_in


def run(torch: Any, made: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Calls the function on a device that is not there; `made` is the recording that is entered."""
    held = [*_held(function), *args, *kwargs.values()]
    modules = _outermost([each for each in held if isinstance(each, torch.nn.Module)])
    optimizers = list({id(each): each for each in held if is_optimizer(each)}.values())

    def on_device(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        host = made.device.on_host(value) if value.device.type == "meta" else value.detach()
        return host.to(DEVICE).requires_grad_(value.requires_grad)

    def state(value: Any) -> Any:
        return value.detach().clone() if isinstance(value, torch.Tensor) and value.dim() == 0 and value.device.type == "cpu" else on_device(value)

    with standing_in(torch, made, modules) as standing, exchanged(optimizers, standing, state):
        finish = made.observe()
        for module in modules:
            module.to(DEVICE)
        standing.register_hooks()
        for optimizer in optimizers:
            made.capture.optimizers.begin()
            made.capture.optimizers.end(optimizer, "made")
        given, named = torch.utils._pytree.tree_map(on_device, (args, dict(kwargs)))
        for _ in range(int(options.get("steps") or STEPS)):
            function(*given, **named)
        finish()


def _held(function: Any) -> list[Any]:
    """What a function reaches by its variables, and those of the functions that it calls by name."""
    found: list[Any] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
        elif inspect.ismethod(one):
            waiting += [one.__func__, *vars(one.__self__).values()] if hasattr(one.__self__, "__dict__") else [one.__func__]
        elif inspect.isfunction(one) and not one.__module__.startswith("torch"):
            variables = inspect.getclosurevars(one)
            waiting += [*variables.nonlocals.values(), *variables.globals.values()]
        else:
            found.append(one)
    return found


def _outermost(modules: list[Any]) -> list[Any]:
    """Without those that are in others."""
    inner = {id(each) for module in modules for each in module.modules() if each is not module}
    return list({id(module): module for module in modules if id(module) not in inner}.values())
