"""A module and example arguments to a `.pt2` without weights. The only file that needs PyTorch."""

from __future__ import annotations

import copy
from typing import Any, Callable, Optional

from ._program import Error


def _on_meta(module: Any) -> Any:
    """A copy whose parameters and buffers have no data; what was one parameter stays one."""
    import torch

    memo: dict[int, Any] = {}
    for tensor in [*module.parameters(), *module.buffers()]:
        if id(tensor) in memo:
            continue
        bare = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        if isinstance(tensor, torch.nn.Parameter):
            bare = torch.nn.Parameter(bare, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = bare
    return copy.deepcopy(module, memo)


def _bare(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_bare(each) for each in value)
    if isinstance(value, dict):
        return {name: _bare(each) for name, each in value.items()}
    return value


def _output(result: Any) -> Any:
    for name in ("loss", "logits", "last_hidden_state"):
        found = getattr(result, name, None)
        if found is not None:
            return found
    return result[0] if isinstance(result, (list, tuple)) else result


def _usual_loss(output: Any, target: Any) -> Any:
    import torch

    if target.is_floating_point():
        return torch.nn.functional.mse_loss(output, target)
    return torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def _with_loss(module: Any, args: tuple, kwargs: dict, loss: Optional[Callable]) -> Any:
    """The module whose forward gives a scalar: its own loss, `loss(output, last argument)`, or the usual one."""
    import torch

    class WithLoss(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = module

        def forward(self, *given: Any, **named: Any) -> Any:
            if own:
                return _output(self.model(*given, **named))
            return (loss or _usual_loss)(_output(self.model(*given[:-1], **named)), given[-1])

    own = False
    if loss is None:
        try:
            result = _output(module(*args, **kwargs))
            own = isinstance(result, torch.Tensor) and result.dim() == 0
        except TypeError as error:
            if len(args) < 2:
                raise Error(f"the model cannot be called with these arguments: {error}") from None
        if not own and len(args) < 2:
            raise Error("the model gives no scalar loss: pass the targets as the last argument, or loss=…")
    return WithLoss()


def write_export(module: Any, args: Any, path: str, kwargs: Optional[dict] = None, loss: Optional[Callable] = None) -> str:
    """Exports one forward up to the loss to `path`; no weight is copied. Returns the path."""
    import torch

    given = args if isinstance(args, tuple) else (args,)
    bare, named = tuple(_bare(each) for each in given), _bare(kwargs or {})
    training = module.training
    whole = _with_loss(_on_meta(module), bare, named, loss)
    whole.train(training)
    try:
        exported = torch.export.export(whole, bare, named)
    except Exception as error:  # the exporter's own errors have many types
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise Error(f"the model cannot be exported: {first}") from error
    torch.export.save(exported, path)
    return path
