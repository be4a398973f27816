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


MOST = 10_000  #: elements of a list or dictionary in which modules are looked for: a data set has more


def _held(function: Any) -> list[Any]:
    """What a function reaches: by its variables, defaults and what they hold, and those of the functions that it calls by name."""
    import torch

    found: list[Any] = []
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, (torch.nn.Module, torch.Tensor)) or is_optimizer(one):
            found.append(one)
        else:
            waiting += _held_by(one)
    return found


def _held_by(one: Any) -> list[Any]:
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *one.keywords.values()]
    if inspect.ismethod(one):
        return [one.__func__, one.__self__]
    if inspect.isfunction(one):
        return [] if str(one.__module__).startswith("torch") else _held_by_function(one)
    if isinstance(one, dict):
        return list(one.values()) if len(one) <= MOST else []
    if isinstance(one, (list, tuple, set, frozenset)):
        return list(one) if len(one) <= MOST else []
    kind = one if isinstance(one, type) else type(one)
    if inspect.ismodule(one) or str(kind.__module__).partition(".")[0] in ("builtins", "torch", "numpy"):
        return []
    slots = [name for base in kind.__mro__ for name in (base.__dict__.get("__slots__") or ())] if kind is type(one) else []
    return [*getattr(one, "__dict__", {}).values(), *(vars(kind).values() if kind is not one else ()),
            *(getattr(one, name) for name in slots if isinstance(name, str) and hasattr(one, name))]


def _held_by_function(one: Any) -> list[Any]:
    names = _names(one.__code__)
    own = [value for name in names if (value := one.__globals__.get(name)) is not None]
    cells = [cell.cell_contents for cell in one.__closure__ or () if _is_set(cell)]
    wrapped = [value for name, value in vars(one).items() if name == "__wrapped__"]
    # Of a module of Python, what the function may ask it for: all of it may be a library.
    files = [value for value in (*own, *cells) if inspect.ismodule(value) and value.__name__.partition(".")[0] != "torch"]
    return [*own, *cells, *wrapped, *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values(),
            *(value for file in files for name in names if (value := vars(file).get(name)) is not None)]


def _names(code: Any) -> set[str]:
    """Of variables and attributes, in functions within it, too."""
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if inspect.iscode(inner)))


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _outermost(modules: list[Any]) -> list[Any]:
    """Without those that are in others."""
    inner = {id(each) for module in modules for each in module.modules() if each is not module}
    return list({id(module): module for module in modules if id(module) not in inner}.values())
