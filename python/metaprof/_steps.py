"""The steps of a module as a captured program: its forward runs in this process, on tensors of a device that is not there."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, Callable, Iterator, Mapping, Optional

from ._devices import description_of
from ._inputs import Inputs
from ._losses import fits, is_scalar, loss_of, output_of, takes_target
from ._program import Error
from ._recorder import recording
from ._stand_ins import random_state, stand_ins

STEPS = 3  #: as on the command line
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
#: Options that the capture follows itself. The command line gets the others.
FOLLOWED = ("batch", "sequence", "set", "precision", "steps", "mode", "channels_last", "zero_grad_to_none", "clip_norm", "clip_value")


def rest_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of captured steps that the command line follows."""
    return {"optimizer": "adamw", "device": "h200", **{name: value for name, value in options.items() if name not in FOLLOWED}}


def combinations(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the capture follows of options that are lists: one of each for each combination."""
    lists = {name: options[name] for name in FOLLOWED if isinstance(options.get(name), (list, tuple))}
    return [dict(zip(lists, chosen)) for chosen in itertools.product(*lists.values())]


class _Groups:
    """In the place of an optimizer: the program has its parameters, and --optimizer says what it does."""

    def __init__(self, parameters: list[Any]):
        self.param_groups = [{"params": parameters}]


class NoScalar(Exception):
    """What the module gives is no scalar."""


def write_program(module: Any, args: Any, path: str, kwargs: Optional[dict[str, Any]] = None,
                  loss: Optional[Callable[..., Any]] = None, options: Optional[Mapping[str, Any]] = None) -> str:
    """Captures the steps of a module to `path`. Returns the path.

    Error: the module cannot be called so, it gives no loss, or it reads data of the device that nobody knows.
    """
    try:
        import torch
    except ImportError:
        raise Error("a module needs PyTorch; a config.json, a .pt2 or a .mp does not") from None
    if not isinstance(module, torch.nn.Module):
        raise Error(f"a model is an nn.Module or a path, not {type(module).__name__}")
    named = dict(kwargs or {})
    if isinstance(args, Mapping):
        named, args = {**args, **named}, ()
    given = args if isinstance(args, tuple) else () if args is None else (args,)
    text = _text(torch, module, given, named, loss, dict(options or {}))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _text(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Optional[Callable[..., Any]],
          options: dict[str, Any]) -> str:
    if loss is not None:
        target = 1 if takes_target(loss) and args else 0
        return _Capture(torch, module, args, kwargs, target, loss, options).text()
    first: Optional[Exception] = None
    if fits(module.forward, args, kwargs):
        try:
            return _Capture(torch, module, args, kwargs, 0, None, options).text()
        except NoScalar as error:
            first = Error(str(error))
        except Error as error:  # whatever a module says of a target that it does not take
            first = error
    if len(args) < 2:
        raise first or Error(f"{type(module).__name__}.forward does not take these arguments")
    try:
        return _Capture(torch, module, args, kwargs, 1, None, options).text()
    except (Error, NoScalar) as error:
        raise first or error from error.__cause__


class _Capture:
    """The steps of a module with these arguments. `target`: how many of the last ones are none of the module's."""

    def __init__(self, torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], target: int,
                 loss: Optional[Callable[..., Any]], options: dict[str, Any]):
        self.torch, self.module, self.target, self.loss, self.options = torch, module, target, loss, options
        self.inputs = Inputs(module.forward, args, kwargs, target).sized(options)
        self.precision = str(options.get("precision") or "fp32")
        self.mode = str(options.get("mode") or "train")

    def text(self) -> str:
        library = recording()
        made = library.Recording(self.torch, description_of(self.options.get("device")))
        device = self.device = made.device

        def parameter(tensor: Any) -> Any:
            return self.torch.nn.Parameter(device.on_host(tensor), requires_grad=tensor.requires_grad)

        def buffer(tensor: Any) -> Any:
            return tensor.detach() if tensor.device.type == "cpu" else device.on_host(tensor)

        try:
            with random_state(), made, self._mode(), stand_ins(self.module, parameter, buffer):
                self._run(made)
        except library.Refused as error:
            raise Error(str(error)) from error
        except NoScalar:
            raise
        except Exception as error:  # the module's own
            raise Error(f"the model cannot be called with these arguments: {_first_line(error)}") from error
        if made.capture.refused:
            raise Error(f"the model's calls cannot be captured: {made.capture.refused}")
        return made.text()

    # ---- the program: what a user would write

    def _run(self, made: Any) -> None:
        made.phase("setup", 0)
        module = self._placed(self.module)
        parameters = [each for each in module.parameters() if each.requires_grad]
        optimizers = made.capture.optimizers
        if self._trains:
            optimizer = _Groups(parameters)
            optimizers.begin()
            optimizers.end(optimizer, "made")
        args, kwargs = self._moved(self.inputs.args), self._moved(self.inputs.kwargs)
        for step in range(int(self.options.get("steps") or STEPS)):
            made.phase("forward", step)
            loss = self._forward(module, args, kwargs)
            if not self._trains:
                del loss
                continue
            made.phase("backward", step)
            loss.backward()
            made.phase("optimizer", step)
            self._clip(parameters)
            optimizers.begin()
            optimizers.end(optimizer, "step")
            made.phase("zero_grad", step)
            module.zero_grad(set_to_none=self.options.get("zero_grad_to_none") is not False)
        made.phase(None, 0)  # what goes with the variables here is of no phase

    @property
    def _trains(self) -> bool:
        return self.mode in ("train", "eval")

    @contextlib.contextmanager
    def _mode(self) -> Iterator[None]:
        torch = self.torch
        modes = {"no-grad": torch.no_grad, "inference": torch.inference_mode}
        with modes.get(self.mode, contextlib.nullcontext)():
            yield

    def _placed(self, module: Any) -> Any:
        torch = self.torch
        module.train(self.mode == "train")
        if self.options.get("channels_last"):
            return module.to("cuda", self._dtype, memory_format=torch.channels_last)
        return module.to("cuda", self._dtype)

    @property
    def _dtype(self) -> Any:
        """That of everything with a floating point; None: as it is."""
        return getattr(self.torch, DTYPES[self.precision]) if self.precision in DTYPES else None

    def _moved(self, tree: Any) -> Any:
        """Example arguments on the device."""
        torch = self.torch

        def move(tensor: Any) -> Any:
            dtype = self._dtype if tensor.is_floating_point() else None
            layout = {"memory_format": torch.channels_last} if self.options.get("channels_last") and tensor.dim() == 4 else {}
            host = tensor.detach() if tensor.device.type != "meta" else self.device.on_host(tensor)
            return host.to("cuda", dtype, **layout).requires_grad_(tensor.requires_grad)

        return torch.utils._pytree.tree_map_only(torch.Tensor, move, tree)

    def _forward(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The loss; or, where there is no backward, what the module gives."""
        own = len(args) - self.target
        with self._autocast():
            output = output_of(module(*args[:own], **kwargs))
            if not self._trains:
                return output
            loss = loss_of(self.loss, output, args[own:])
        if not is_scalar(loss):
            raise NoScalar("the model gives no scalar loss: pass the targets as the last argument, or loss=…")
        if not loss.requires_grad:
            raise Error("the loss does not depend on any parameter that requires grad")
        return loss

    def _autocast(self) -> Any:
        if not self.precision.startswith("amp-"):
            return contextlib.nullcontext()
        return self.torch.autocast("cuda", getattr(self.torch, DTYPES[self.precision[len("amp-"):]]))

    def _clip(self, parameters: list[Any]) -> None:
        clip = self.torch.nn.utils
        if self.options.get("clip_norm") is not None:
            clip.clip_grad_norm_(parameters, float(self.options["clip_norm"]))
        if self.options.get("clip_value") is not None:
            clip.clip_grad_value_(parameters, float(self.options["clip_value"]))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
