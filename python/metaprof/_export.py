"""A module and example arguments to a `.pt2` without weights. The only file that needs PyTorch."""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import json
import os
import traceback
from typing import Any, Callable, Iterator, Mapping, Optional

from ._flex_attention import allowed_without_data, make_savable, masks_without_data
from ._program import Error


def _bare(tensor: Any) -> Any:
    import torch

    bare = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(bare, requires_grad=tensor.requires_grad)
    return bare


def _on_meta(module: Any) -> Any:
    """A copy whose parameters and buffers have no data; what was one parameter stays one."""
    memo: dict[int, Any] = {}
    for tensor in [*module.parameters(), *module.buffers()]:
        if id(tensor) not in memo:
            memo[id(tensor)] = _bare(tensor)
    return copy.deepcopy(module, memo)


def _bare_values(value: Any) -> Any:
    import torch

    return torch.utils._pytree.tree_map_only(torch.Tensor, _bare, value)


def _output(result: Any) -> Any:
    """What a loss is taken of: of Hugging Face's outputs their own loss, or else the logits."""
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


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _gives_scalar(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    import torch

    try:
        result = _output(module(*args, **kwargs))
    except Exception as error:  # whatever a model says of a target that it does not take
        if len(args) < 2:
            raise Error(f"the model cannot be called with these arguments: {_first_line(error)}") from error
        return False
    return isinstance(result, torch.Tensor) and result.dim() == 0


def _signature(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], target: bool) -> Optional[inspect.Signature]:
    """The names under which the export keeps its inputs: those of forward, and "target". None: forward does not name them."""
    kinds = inspect.Parameter
    try:
        given = inspect.signature(forward).bind_partial(*args)
    except TypeError:
        return None
    names = list(given.arguments)
    if len(names) != len(args) or set(names) & {*kwargs, "target"}:  # *args
        return None
    words = ["self", *names, *(["target"] if target else [])]
    return inspect.Signature([kinds(word, kinds.POSITIONAL_OR_KEYWORD) for word in words]
                             + [kinds(word, kinds.KEYWORD_ONLY) for word in kwargs])


def _give_loss(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Optional[Callable[..., Any]]) -> None:
    """Makes forward give a scalar: the module's own loss, `loss(output, last argument)`, or the usual one.

    The module gets a class derived from its own, so that its modules keep the names that the user knows.
    """
    own = loss is None and _gives_scalar(module, args, kwargs)
    if not own and len(args) < 2 and (loss is None or not args):
        raise Error("the model gives no scalar loss: pass the targets as the last argument, or loss=…")
    inner = module.__dict__.pop("forward", None)  # of this one object
    kind = type(module)

    # No frame of a stack trace may be called "forward" that is no module's own: readers count them (docs/lifetimes.md).
    def with_loss(self: Any, *given: Any, **named: Any) -> Any:
        call = inner or (lambda *a, **k: kind.forward(self, *a, **k))
        if own:
            return _output(call(*given, **named))
        return (loss or _usual_loss)(_output(call(*given[:-1], **named)), given[-1])

    signature = _signature(inner or module.forward, args if own else args[:-1], kwargs, not own)
    if signature:
        with_loss.__signature__ = signature  # type: ignore[attr-defined]
    module.__class__ = type(kind.__name__, (kind,), {"forward": with_loss, "__module__": kind.__module__})


def _tied(module: Any) -> list[list[str]]:
    """The names of each parameter that has several: without data, nothing else in the file tells (docs/explanation/pt2.md)."""
    names: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [group for group in names.values() if len(group) > 1]


def write_export(module: Any, args: Any, path: str, kwargs: Optional[dict[str, Any]] = None,
                 loss: Optional[Callable[..., Any]] = None) -> str:
    """Exports one forward up to the loss to `path`; no weight is copied. Returns the path."""
    try:
        import torch
    except ImportError:
        raise Error("a module needs PyTorch to be exported; a config.json, a .pt2 or a .mp does not") from None

    if not isinstance(module, torch.nn.Module):
        raise Error(f"a model is an nn.Module or a path, not {type(module).__name__}")
    named = dict(kwargs or {})
    if isinstance(args, Mapping):
        named, args = {**args, **named}, ()
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    given, named = _bare_values(given), _bare_values(named)
    whole = _on_meta(module)
    masks_without_data(whole)
    with allowed_without_data():
        _give_loss(whole, given, named, loss)
        exported = _exported(whole, given, named)
    make_savable(exported)
    try:
        torch.export.save(exported, path, extra_files={"training.json": json.dumps({"tied": _tied(whole), "training": whole.training})})
    except Exception as error:
        raise Error(f"the export of the model cannot be saved: {_first_line(error)}") from error
    return path


@contextlib.contextmanager
def _contiguous_is_called() -> Iterator[None]:
    """`x.contiguous()` of a contiguous tensor gives back x before anything is called, and leaves no trace in an export. On a GPU
    x may have other strides, and is copied."""
    import torch

    plain = torch.Tensor.contiguous
    calls: list[Any] = []  # that are under way: the exporter's modes call the method again

    def contiguous(self: Any, memory_format: Any = torch.contiguous_format) -> Any:
        if calls:
            return plain(self, memory_format=memory_format)
        calls.append(self)
        try:
            made = plain(self, memory_format=memory_format)
            return made if made is not self else torch.ops.aten.contiguous.default(self, memory_format=memory_format)
        finally:
            calls.pop()

    torch.Tensor.contiguous = contiguous  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.contiguous = plain  # type: ignore[method-assign]


@contextlib.contextmanager
def _functions_are_named() -> Iterator[None]:
    """Of the functions that are running, PyTorch writes only those called `forward` into an export (torch/fx/proxy.py). A method
    that forward calls has variables of its own, which live until it returns: readers need its lines, too."""
    import torch
    from torch.fx import proxy
    from torch.fx.experimental.symbolic_shapes import uninteresting_files

    plain = getattr(proxy.TracerBase, "_filter_traceback_frames", None)
    if plain is None:  # PyTorch before 2.9
        yield
        return
    exporters = {*uninteresting_files(), __file__}
    of_torch = os.path.join(os.path.dirname(torch.__file__), "")

    def with_functions(self: Any, frames: traceback.StackSummary) -> traceback.StackSummary:
        inside = itertools.dropwhile(lambda frame: frame.name != "forward", frames)
        return traceback.StackSummary.from_list([
            frame for frame in inside
            if frame.filename not in exporters and (frame.name == "forward" or not frame.filename.startswith(of_torch))])

    proxy.TracerBase._filter_traceback_frames = with_functions  # type: ignore[method-assign]
    try:
        yield
    finally:
        proxy.TracerBase._filter_traceback_frames = plain  # type: ignore[method-assign]


@contextlib.contextmanager
def _nothing_is_lost() -> Iterator[None]:
    """Error: the model calls what an export does not keep."""
    import torch
    import torch.utils.checkpoint as checkpoint

    function = torch.autograd.function
    region = checkpoint._checkpoint_without_reentrant_generator

    def without_reentrant(called: Any, *given: Any, **named: Any) -> Any:
        raise Error(f"an export has no region of torch.utils.checkpoint, and {called} is in one: metaprof.profile(model, …) captures it")

    def custom(cls: Any, *given: Any, **named: Any) -> Any:
        if cls.__module__.startswith("torch."):  # of its own operators in Python, which an export keeps
            return apply.__get__(None, cls)(*given, **named)
        raise Error(f"an export has no backward of a function's own, and {cls.__module__}.{cls.__qualname__} has one: metaprof.profile(model, …) captures it")

    checkpoint._checkpoint_without_reentrant_generator = without_reentrant
    owner = function._SingleLevelFunction if hasattr(function.Function.__dict__["apply"], "__func__") else function.Function
    own = vars(owner).get("apply")
    apply = own or vars(torch._C._FunctionBase)["apply"]
    owner.apply = classmethod(custom)
    try:
        yield
    finally:
        checkpoint._checkpoint_without_reentrant_generator = region
        if own is None:
            del owner.apply
        else:
            owner.apply = own


def _exported(module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    import torch

    try:
        with _contiguous_is_called(), _functions_are_named(), _nothing_is_lost():
            return torch.export.export(module, args, kwargs, strict=False)
    except Error:
        raise
    except Exception as error:  # the exporter's own errors have many types
        raise Error(f"the model cannot be exported: {_first_line(error)}") from error
