"""What a user would write to train a module for some steps, called on a device that is not there."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Mapping, Optional

from ._inputs import Inputs
from ._losses import is_scalar, loss_of
from ._optimizers import Placeholder, is_optimizer, of_stand_ins
from ._program import Error
from ._stand_ins import DEVICE

STEPS = 3  #: as on the command line
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
PRECISIONS = ("fp32", "bf16", "fp16", "amp-bf16")
MODES = ("train", "eval", "no-grad", "inference")
HOOKS = {"none": None, "offload": False, "offload-pinned": True}  #: whether what is saved on the host is pinned


class NoScalar(Exception):
    """What the module gives is no scalar."""


class Script:
    """`made`: the recording that is entered. `standing(tensor)`: what stands for a parameter of the module; None: nothing."""

    def __init__(self, torch: Any, made: Any, standing: Any, loss: Optional[Callable[..., Any]], options: Mapping[str, Any]):
        self.torch, self.made, self.standing, self.loss, self.options = torch, made, standing, loss, options
        if options.get("precision") == "amp-fp16":
            raise Error("precision='amp-fp16': its gradients are scaled, which a captured module does not do: metaprof.run follows a program with a GradScaler; "
                        "amp-bf16 has the same sizes, but not on every card the same attention")
        self.precision = _one_of("precision", options.get("precision") or "fp32", PRECISIONS)
        self.mode = _one_of("mode", options.get("mode") or "train", MODES)
        self.pinned = HOOKS[_one_of("hooks", options.get("hooks") or "none", tuple(HOOKS))]
        self.trains = self.mode in ("train", "eval")

    def run(self, module: Any, inputs: Inputs) -> None:
        made, steps = self.made, int(self.options.get("steps") or STEPS)
        made.phase("setup", 0)
        module = self._placed(module)
        self.standing.register_hooks()
        parameters = [each for each in module.parameters() if each.requires_grad]
        optimizer = self._optimizer(parameters) if self.trains else None
        args, kwargs = self._moved(inputs.args), self._moved(inputs.kwargs)
        made.name_inputs(list(kwargs.values()))
        for step in range(steps):
            made.phase("forward", step)
            with self._gradients():
                loss = self._forward(module, args, kwargs, len(args) - inputs.target)
            if self.trains:
                made.phase("backward", step)
                loss.backward()
                made.phase("optimizer", step)
                self._clip(parameters)
                if optimizer is not None:
                    optimizer.step()
                made.phase("zero_grad", step)
                module.zero_grad(set_to_none=self.options.get("zero_grad_to_none") is not False)
            else:
                del loss
        made.phase(None, 0)  # what goes with the variables here is of no phase

    def _placed(self, module: Any) -> Any:
        module.train(self.mode == "train")
        layout = {"memory_format": self.torch.channels_last} if self.options.get("channels_last") else {}
        return module.to(DEVICE, self._dtype, **layout)

    @property
    def _dtype(self) -> Any:
        """That of everything with a floating point; None: as it is."""
        return getattr(self.torch, DTYPES[self.precision]) if self.precision in DTYPES else None

    def _optimizer(self, parameters: list[Any]) -> Any:
        chosen = self.options.get("optimizer", "adamw")
        if is_optimizer(chosen):
            made = of_stand_ins(chosen, self.standing, self._state)
            self.made.name_state(made)
            return made
        return Placeholder(self.made, parameters) if parameters and chosen not in (None, "none") else None

    def _state(self, value: Any) -> Any:
        """What an optimizer keeps of a parameter: on the device, but numbers such as steps, which stay where they are."""
        if not isinstance(value, self.torch.Tensor):
            return value
        if value.dim() == 0:
            return value.detach().clone() if value.device.type == "cpu" else self.made.device.on_host(value).to(DEVICE)
        return self.made.device.on_host(value).to(DEVICE)

    def _moved(self, tree: Any) -> Any:
        """Example arguments on the device."""
        torch = self.torch

        def move(tensor: Any) -> Any:
            dtype = self._dtype if tensor.is_floating_point() else None
            layout = {"memory_format": torch.channels_last} if self.options.get("channels_last") and tensor.dim() == 4 else {}
            host = self.made.device.on_host(tensor) if tensor.device.type == "meta" else tensor.detach()
            return host.to(DEVICE, dtype, **layout).requires_grad_(tensor.requires_grad)

        return torch.utils._pytree.tree_map_only(torch.Tensor, move, tree)

    def _forward(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], own: int) -> Any:
        """The loss; or, where there is no backward, what the module gives. `own`: how many of args are the module's."""
        with self._autocast(), self._saved():
            output = module(*args[:own], **kwargs)
            if not self.trains:
                return output
            loss = loss_of(self.loss, output, args[own:])
            del output
        if not is_scalar(loss):
            raise NoScalar("the model gives no scalar loss: pass the targets as the last argument, or loss=…; FILE.py:FUNCTION returns (module, inputs, loss)")
        if not loss.requires_grad:
            raise Error("the loss does not depend on any parameter that requires grad")
        return loss

    def _gradients(self) -> Any:
        modes = {"no-grad": self.torch.no_grad, "inference": self.torch.inference_mode}
        return modes.get(self.mode, contextlib.nullcontext)()

    def _autocast(self) -> Any:
        if not self.precision.startswith("amp-"):
            return contextlib.nullcontext()
        return self.torch.autocast("cuda", getattr(self.torch, DTYPES[self.precision[len("amp-"):]]))

    def _saved(self) -> Any:
        """How what autograd saves is kept."""
        return contextlib.nullcontext() if self.pinned is None else self.torch.autograd.graph.save_on_cpu(pin_memory=self.pinned)

    def _clip(self, parameters: list[Any]) -> None:
        clip = self.torch.nn.utils
        if self.options.get("clip_norm") is not None:
            clip.clip_grad_norm_(parameters, float(self.options["clip_norm"]))
        if self.options.get("clip_value") is not None:
            clip.clip_grad_value_(parameters, float(self.options["clip_value"]))


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise Error(f"{name}={value!r}: of a module it is one of {', '.join(known)}")
    return str(value)
