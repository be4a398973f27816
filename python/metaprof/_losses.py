"""Which scalar a module's step is differentiated from."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Optional


def output_of(result: Any) -> Any:
    """What a loss is taken of: of Hugging Face's outputs their own loss, or else the logits."""
    for name in ("loss", "logits", "last_hidden_state"):
        found = getattr(result, name, None)
        if found is not None:
            return found
    return result[0] if isinstance(result, (list, tuple)) else result


def is_scalar(output: Any) -> bool:
    import torch

    return isinstance(output, torch.Tensor) and output.numel() == 1


def usual_loss(output: Any, target: Any) -> Any:
    """The squared error of floating targets, else cross-entropy, with the classes last ([N, …, C]) or, as in PyTorch, second ([N, C, …])."""
    import torch

    if target.is_floating_point():
        return torch.nn.functional.mse_loss(output, target)
    if output.shape[:-1] != target.shape and output.shape[:1] + output.shape[2:] == target.shape:
        return torch.nn.functional.cross_entropy(output, target)
    return torch.nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def takes_target(loss: Callable[..., Any]) -> bool:
    """Whether a loss that the user gives takes more than the output."""
    try:
        inspect.signature(loss).bind(None)
    except TypeError:
        return True
    except ValueError:  # it has no signature
        return True
    return False


def fits(forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function takes these arguments, as far as its signature says."""
    try:
        inspect.signature(forward).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def loss_of(loss: Optional[Callable[..., Any]], output: Any, target: Any) -> Any:
    """`output`: what the module returns; a loss that the user gives takes it as it is. `target`: a tuple of one, or of none."""
    if loss is not None:
        return loss(output, *target)
    output = output_of(output)
    return usual_loss(output, *target) if target else output
