"""The steps of a module as a captured program: its forward runs in this process, on tensors of a device that is not there."""

from __future__ import annotations

import inspect
import itertools
import os
import re
import tempfile
import re
from typing import Any, Callable, Mapping, Optional

from ._devices import DEFAULT, description_of
from ._functions import run
from ._inputs import Inputs, copied_from_gpu
from ._losses import fits, takes_target
from ._optimizers import is_optimizer
from ._program import Error, call
from ._recorder import recording
from ._script import NoScalar, Script
from ._stand_ins import random_state, standing_in

#: Options that the capture follows itself. The command line gets the others.
FOLLOWED = ("batch", "sequence", "set", "precision", "steps", "mode", "hooks", "channels_last", "zero_grad_to_none", "clip_norm", "clip_value")
#: Options that change a model which the command line has read. The source of a module says them.
OF_EXPORTS = ("lora", "base_weights", "kv_cache", "grad", "create_graph", "hvp", "execution")

LITTLE = 1e-3  #: change of a peak with which steps are still the same, whatever number they read


def rest_of(model: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of captured steps that the command line follows. Those of a function are its own but for sizes and their number."""
    if inspect.isroutine(model) or not hasattr(model, "parameters"):
        return {"device": DEFAULT, **{name: value for name, value in options.items() if name not in ("batch", "sequence", "set", "steps")}}
    rest = {"device": DEFAULT, "optimizer": "adamw", **{name: value for name, value in options.items() if name not in FOLLOWED}}
    if is_optimizer(rest["optimizer"]) or rest["optimizer"] in (None, "none") or options.get("mode") in ("no-grad", "inference"):
        del rest["optimizer"]  # the steps have their own, or none
    return rest


def combinations(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the capture follows of options that are lists: one of each for each combination."""
    return products({name: options[name] for name in FOLLOWED if isinstance(options.get(name), (list, tuple))})


def products(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One of each option for each combination of those that are lists."""
    values = [value if isinstance(value, (list, tuple)) else [value] for value in options.values()]
    return [dict(zip(options, chosen)) for chosen in itertools.product(*values)]


def write_program(module: Any, args: Any, path: str, kwargs: Optional[dict[str, Any]] = None,
                  loss: Optional[Callable[..., Any]] = None, options: Optional[Mapping[str, Any]] = None) -> str:
    """Captures the steps of a module to `path`. Returns the path.

    Error: the module cannot be called so, it gives no loss, or it reads data of the device that nobody knows.
    """
    try:
        import torch
    except ImportError:
        raise Error("a module needs PyTorch; a config.json, a .pt2 or a .mp does not") from None
    if not isinstance(module, torch.nn.Module) and not callable(module):
        raise Error(f"a model is an nn.Module, a function that trains, or a path, not {type(module).__name__}")
    chosen = dict(options or {})
    for name in OF_EXPORTS:
        if chosen.get(name) not in (None, False, "eager"):
            raise Error(f"{name}: of a module it is what its source says; of its export it is an option: metaprof.profile(metaprof.export(model, …), {name}=…)")
    named = dict(kwargs or {})
    if isinstance(args, Mapping):
        named, args = {**args, **named}, ()
    given, named = copied_from_gpu((args if isinstance(args, tuple) else () if args is None else (args,), named))
    if isinstance(module, torch.nn.Module):
        text = _text(torch, module, given, named, loss, chosen)
    else:
        inputs = Inputs(module, given, named, 0).sized(chosen)
        text = _text_of(torch, lambda made: run(torch, made, module, inputs.args, inputs.kwargs, chosen), chosen)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _text(torch: Any, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Optional[Callable[..., Any]],
          options: dict[str, Any]) -> str:
    """Tries what the arguments may mean: all of them are the module's, or the last one is the target."""
    def captured(target: int) -> str:
        return _captured(torch, module, Inputs(module.forward, args, kwargs, target).sized(options), loss, options)

    if loss is not None:
        return captured(1 if takes_target(loss) and args else 0)
    first: Optional[Exception] = None
    if fits(module.forward, args, kwargs):
        try:
            return captured(0)
        except NoScalar as error:
            first = Error(str(error))
        except Error as error:  # whatever a module says of a target that it does not take
            first = error
    if len(args) < 2:
        raise first or Error(f"{type(module).__name__}.forward does not take these arguments")
    try:
        return captured(1)
    except (Error, NoScalar) as error:
        raise first or error from error.__cause__


def _captured(torch: Any, module: Any, inputs: Inputs, loss: Optional[Callable[..., Any]], options: dict[str, Any]) -> str:
    def steps(made: Any) -> None:
        with standing_in(torch, made, [module]) as standing:
            Script(torch, made, standing, loss, options).run(module, inputs)

    return _text_of(torch, steps, options)


def _text_of(torch: Any, steps: Callable[[Any], None], options: Mapping[str, Any]) -> str:
    """The program of what `steps` calls, which is given the recording."""
    library = recording()
    try:
        return _recorded(torch, steps, options).text()
    except Error as error:
        if not isinstance(error.__cause__, library.Unread):
            raise
        text = _whatever_it_reads(torch, steps, options)
        if text is None:
            raise
        return text


def _recorded(torch: Any, steps: Callable[[Any], None], options: Mapping[str, Any], tried: Optional[int] = None) -> Any:
    library = recording()
    made = library.Recording(torch, description_of(options.get("device")), tried)
    try:
        with random_state(), made:
            steps(made)
    except library.Refused as error:
        raise Error(str(error)) from error
    except (Error, NoScalar):
        raise
    except Exception as error:  # the model's own
        raise Error(f"the model cannot be called with these arguments: {_first_line(error)}") from error
    if made.capture.refused:
        raise Error(f"the model's calls cannot be captured: {made.capture.refused}")
    return made


def _whatever_it_reads(torch: Any, steps: Callable[[Any], None], options: Mapping[str, Any]) -> Optional[str]:
    """The program of steps that read numbers which nothing tells, if small and large ones lead to the same memory. None: they do not."""
    try:
        small, large = (_recorded(torch, steps, options, tried) for tried in (0, 1))
        texts = small.text(), large.text()
        change = 0.0 if _but_for_numbers(texts[0]) == _but_for_numbers(texts[1]) else _largest_change(*texts)
    except Error:
        return None
    if change > LITTLE:
        return None
    small.capture.warn("with large numbers in their place, " + (f"peaks and FLOPs change by up to {change:.4%}" if change else "the steps make the same calls"))
    return str(small.text())


def _but_for_numbers(text: str) -> str:
    """A program without its real numbers, which decide neither sizes nor what is called, and without its warnings."""
    text = re.sub(r"^warning .*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"(?<![\w.%])-?(\d+\.\d*(e[-+]?\d+)?|\d+e[-+]?\d+|inf|nan)(?![\w.])", "real", text)


def _largest_change(*texts: str) -> float:
    """Of the peak of a phase or of FLOPs, between two programs of the same steps."""
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for text in texts:
            path = os.path.join(folder, "steps.mp")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            report, _ = call(["profile", path])
            figures.append([(phase["phase"], phase["allocated_bytes"]["peak"]) for phase in report["phases"]]
                           + [(part, report["flops"][part]) for part in ("forward", "backward", "recompute")])
    if [name for name, _ in figures[0]] != [name for name, _ in figures[1]]:
        return 1.0
    return max(abs(one - other) / max(one, other, 1) for (_, one), (_, other) in zip(*figures))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
