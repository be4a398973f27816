"""A function that trains: a step, which calls backward and optimizers itself."""

from __future__ import annotations

import contextlib
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
    """What a function reaches: by its variables and defaults, what they hold, and the functions that it calls by name."""
    return _Reach().of(function)


class _Reach:
    """Follows objects from one to the next. Of a class or a file of Python, only what is asked for by name somewhere counts: another method may
    train another model."""

    def __init__(self) -> None:
        self._names: set[str] = set()   # of variables and attributes, in the functions that were found
        self._spaces: list[Any] = []    # classes and files that were found
        self._seen: set[int] = set()

    def of(self, function: Any) -> list[Any]:
        import torch

        found: list[Any] = []
        waiting = [function]
        while waiting:
            while waiting:
                one = waiting.pop()
                if id(one) in self._seen:
                    continue
                self._seen.add(id(one))
                if isinstance(one, (torch.nn.Module, torch.Tensor)) or is_optimizer(one):
                    found.append(one)
                else:
                    waiting += self._held_by(one)
            named = [vars(space).get(name) for space in self._spaces for name in self._names if name in vars(space)]
            waiting = [one for one in named if id(one) not in self._seen]
        return found

    def _held_by(self, one: Any) -> list[Any]:
        if isinstance(one, functools.partial):
            return [one.func, *one.args, *one.keywords.values()]
        if inspect.ismethod(one):
            return [one.__func__, one.__self__]
        if isinstance(one, (staticmethod, classmethod)):
            return [one.__func__]
        if inspect.isfunction(one):
            return [] if str(one.__module__).startswith("torch") else self._held_by_function(one)
        if isinstance(one, (list, tuple, set, frozenset, dict)):
            return list(one.values() if isinstance(one, dict) else one) if len(one) <= MOST else []
        if inspect.ismodule(one):
            self._spaces += [one] if one.__name__.partition(".")[0] != "torch" else []
            return []
        kind = one if isinstance(one, type) else type(one)
        if kind.__module__.partition(".")[0] in ("builtins", "torch"):
            return []
        self._spaces += [base for base in kind.__mro__ if base is not object]
        return [] if one is kind else _attributes(one)

    def _held_by_function(self, one: Any) -> list[Any]:
        names = _names(one.__code__)
        self._names |= names
        return [*(one.__globals__[name] for name in names if name in one.__globals__),
                *(cell.cell_contents for cell in one.__closure__ or () if _is_set(cell)),
                *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values(), getattr(one, "__wrapped__", None)]


def _attributes(one: Any) -> list[Any]:
    """Of an object itself, in its dictionary or its slots."""
    found = list(getattr(one, "__dict__", {}).values())
    for slot in (value for base in type(one).__mro__ for value in vars(base).values() if inspect.ismemberdescriptor(value)):
        with contextlib.suppress(AttributeError):  # nothing is in it yet
            found.append(slot.__get__(one))
    return found


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
