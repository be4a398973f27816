"""A module's example arguments: their names, and other sizes for them."""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any, Callable, Mapping, Optional

from ._program import Error

TARGET = "target"


class Inputs:
    """`args` and `kwargs` of a module's forward; the last `target` of args are none of the module's."""

    def __init__(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], target: int):
        self.args, self.kwargs, self.target = args, dict(kwargs), target
        self.names = [*_names(forward, args[:len(args) - target]), *[TARGET] * target]

    def sized(self, options: Mapping[str, Any]) -> "Inputs":
        """The same with the sizes that batch, sequence and set ask for. Error: there is no such input, or size."""
        changed = dict(zip([*self.names, *self.kwargs], [*self.args, *self.kwargs.values()]))
        if options.get("batch") is not None:
            now = next((value.shape[0] for value in changed.values() if _is_tensor(value) and value.dim()), None)
            changed = _each(changed, lambda each: each.dim() > 0 and each.shape[0] == now, 0, _size(options, "batch"))
        if options.get("sequence") is not None:
            changed = _each(changed, lambda each: each.dim() > 1 and not each.is_floating_point(), 1, _size(options, "sequence"))
        for name, shape in (options.get("set") or {}).items():
            if name not in changed or not _is_tensor(changed[name]):
                raise Error(f"there is no input tensor '{name}'; there are: {', '.join(n for n, v in changed.items() if _is_tensor(v)) or 'none'}")
            changed[name] = _of_shape(changed[name], _shape(name, shape))
        made = copy.copy(self)
        values = list(changed.values())
        made.args, made.kwargs = tuple(values[:len(self.args)]), dict(zip(self.kwargs, values[len(self.args):]))
        return made


def copied_from_gpu(tree: Any) -> Any:
    """The same with copies of tensors that are on a GPU. Called before anything is recorded: it is none of the program's calls that copies them."""
    import torch

    def copied(tensor: Any) -> Any:
        return tensor if tensor.device.type in ("cpu", "meta") else tensor.detach().cpu().requires_grad_(tensor.requires_grad)

    return torch.utils._pytree.tree_map_only(torch.Tensor, copied, tree)


def size_of(args: Any, kwargs: Optional[Mapping[str, Any]], find: str) -> int:
    """How large the batch is, or the sequence."""
    values = [*(args.values() if isinstance(args, Mapping) else args if isinstance(args, tuple) else [args]), *(kwargs or {}).values()]
    dimension = 0 if find == "batch" else 1
    return next((value.shape[dimension] for value in values if _is_tensor(value) and value.dim() > dimension), 1)


def _names(forward: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """As forward names them, or args_0 and so on."""
    try:
        names = list(inspect.signature(forward).bind_partial(*args).arguments)
    except (TypeError, ValueError):
        names = []
    return names if len(names) == len(args) else [f"args_{i}" for i in range(len(args))]


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _size(options: Mapping[str, Any], name: str) -> int:
    size = options[name]
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise Error(f"{name}={size!r}: expected a whole number above 0")
    return size


def _shape(name: str, shape: Any) -> list[int]:
    sizes = re.split("x", shape) if isinstance(shape, str) else [shape] if isinstance(shape, int) else shape
    try:
        return [int(size) for size in sizes]
    except (TypeError, ValueError):
        raise Error(f"set: {name}={shape!r}: expected sizes, (2, 512)") from None


def _each(values: dict[str, Any], fits: Callable[[Any], bool], dimension: int, size: int) -> dict[str, Any]:
    def of(value: Any) -> Any:
        shape = list(value.shape)
        shape[dimension] = size
        return _of_shape(value, shape)

    if not any(_is_tensor(value) and fits(value) for value in values.values()):
        raise Error(f"no input has a dimension {dimension} that could be {size}")
    return {name: of(value) if _is_tensor(value) and fits(value) else value for name, value in values.items()}


def _of_shape(value: Any, shape: list[int]) -> Any:
    """A tensor of this shape: its elements again and again, so that a mask of ones stays one."""
    import torch

    if len(shape) != value.dim() or value.numel() == 0 or value.device.type == "meta":
        made = torch.zeros(shape, dtype=value.dtype, device="meta" if value.device.type == "meta" else "cpu")
        return made.requires_grad_(value.requires_grad)
    made = value.detach()
    for dimension, size in enumerate(shape):
        if size != made.shape[dimension]:
            made = made.index_select(dimension, torch.arange(size, device=made.device) % made.shape[dimension])
    return made.requires_grad_(value.requires_grad)
