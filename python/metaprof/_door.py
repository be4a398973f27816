"""Modules that the command line names: timm:NAME, torchvision:NAME, transformers:NAME, FILE.py:FUNCTION.

    python -m metaprof._door NAME OUT.mp OPTIONS

writes the captured steps to OUT.mp, or why there are none to OUT.mp.error; OUT.mp.step says that they are those of a function. OPTIONS: JSON with what `metaprof profile` was asked for,
and `config`, the text of a configuration that is built in. The program metaprof calls this with the Python that the user has.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from typing import Any, Callable, Mapping, Optional

from ._program import Error

BATCH, SEQUENCE = 2, 1024  #: where nobody asks for others


class Named:
    """What a name stands for: a module with its arguments, or a function that trains."""

    def __init__(self, model: Any, args: Any = (), kwargs: Optional[Mapping[str, Any]] = None, loss: Optional[Callable[..., Any]] = None):
        self.model, self.args, self.kwargs, self.loss = model, args, dict(kwargs or {}), loss


def named(name: str, options: Mapping[str, Any]) -> Named:
    """Error: there is no such library, model or function."""
    source, _, rest = name.partition(":")
    if source in LIBRARIES:
        return LIBRARIES[source](rest, options)
    file, _, function = name.rpartition(":")
    return _of_file(file, function)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Error(f"{name}: {sys.executable} cannot import it ({error}); METAPROF_PYTHON or --interpreter names another Python") from None


def _on_meta(make: Callable[[], Any]) -> Any:
    """Without weights where that can be; a module that reads numbers while it is made has them."""
    import torch

    try:
        with torch.device("meta"):
            return make()
    except Exception:
        return make()


def _size(options: Mapping[str, Any], name: str, usual: int) -> int:
    return int(options.get(name) or usual)


def _of_timm(name: str, options: Mapping[str, Any]) -> Named:
    import torch

    timm = _library("timm")
    if not timm.is_model(name):
        near = timm.list_models(f"*{name}*")[:3] or timm.list_models(name[:4] + "*")[:3]
        raise Error(f"timm has no model '{name}'{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
    model = _on_meta(lambda: timm.create_model(name, pretrained=False))
    size = model.pretrained_cfg.get("input_size", (3, 224, 224))
    batch = _size(options, "batch", BATCH)
    return Named(model, (torch.empty(batch, *size), torch.zeros(batch, dtype=torch.int64)))


def _of_torchvision(name: str, options: Mapping[str, Any]) -> Named:
    import torch

    models = _library("torchvision").models
    if name not in models.list_models():
        near = [each for each in models.list_models() if name.split("_")[0] in each][:3]
        raise Error(f"torchvision has no model '{name}'{'; did you mean ' + ' or '.join(near) + '?' if near else ''}")
    module = inspect.getmodule(models.get_model_builder(name)).__name__
    if ".detection" in module:
        raise Error(f"torchvision:{name}: a detector takes lists of pictures and boxes; write a function that returns it with them, and give FILE.py:FUNCTION")
    without = {"weights_backbone": None} if ".segmentation" in module else {}
    model = _on_meta(lambda: models.get_model(name, weights=None, **without))
    batch = _size(options, "batch", BATCH)
    if ".video" in module:
        return Named(model, (torch.empty(batch, 3, 16, 112, 112), torch.zeros(batch, dtype=torch.int64)))
    if ".segmentation" in module:
        return Named(model, (torch.empty(batch, 3, 224, 224), torch.zeros(batch, 224, 224, dtype=torch.int64)), loss=_of_masks)
    if ".optical_flow" in module:
        raise Error(f"torchvision:{name}: takes pairs of pictures; write a function that returns it with them, and give FILE.py:FUNCTION")
    side = 299 if name == "inception_v3" else 224
    return Named(model, (torch.empty(batch, 3, side, side), torch.zeros(batch, dtype=torch.int64)), loss=_with_auxiliary)


def _of_masks(output: Any, target: Any) -> Any:
    """References of torchvision, segmentation/train.py: the auxiliary classifier counts half."""
    import torch

    losses = {name: torch.nn.functional.cross_entropy(each, target, ignore_index=255) for name, each in output.items()}
    return losses["out"] + 0.5 * losses["aux"] if "aux" in losses else losses["out"]


def _with_auxiliary(output: Any, target: Any) -> Any:
    """Of a model that gives more than logits while it is trained (GoogLeNet, Inception)."""
    import torch

    if isinstance(output, torch.Tensor):
        return torch.nn.functional.cross_entropy(output, target)
    first, *others = [each for each in output if each is not None]
    loss = torch.nn.functional.cross_entropy(first, target)
    for other in others:
        loss = loss + 0.3 * torch.nn.functional.cross_entropy(other, target)
    return loss


def _of_transformers(name: str, options: Mapping[str, Any]) -> Named:
    transformers = _library("transformers")
    text = options.get("config")
    try:
        if text:
            values = json.loads(text)
            config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
        else:
            config = transformers.AutoConfig.from_pretrained(name)
    except Exception as error:
        raise Error(f"transformers:{name}: {str(error).strip().splitlines()[0]}") from None
    classes = [each for each in config.architectures or [] if hasattr(transformers, each)]
    make = getattr(transformers, classes[0]) if classes else transformers.AutoModelForCausalLM.from_config
    model = _on_meta(lambda: make(config))
    return Named(model, (), _inputs_of(model, config, options))


def _inputs_of(model: Any, config: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the class is trained with, by its kind of input and by the ending of its name."""
    import torch

    batch = _size(options, "batch", BATCH)
    kind, ending = model.main_input_name, type(model).__name__.rpartition("For")[2]

    def numbers(*sizes: int) -> Any:
        return torch.zeros(batch, *sizes, dtype=torch.int64)

    if kind == "input_ids":
        positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or SEQUENCE
        sequence = _size(options, "sequence", min(positions, SEQUENCE))
        inputs = {"input_ids": numbers(sequence)}
        if ending in ("SequenceClassification", "MultipleChoice"):
            return {**inputs, "labels": numbers()}
        if ending == "QuestionAnswering":
            return {**inputs, "start_positions": numbers(), "end_positions": numbers()}
        return {**inputs, "labels": numbers(sequence)}
    if kind == "pixel_values":
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", 224)
        height, width = side if isinstance(side, (list, tuple)) else (side, side)
        inputs = {"pixel_values": torch.empty(batch, getattr(vision, "num_channels", 3), height, width)}
        if ending == "SemanticSegmentation":
            return {**inputs, "labels": numbers(height, width)}
        if ending == "ImageClassification":
            return {**inputs, "labels": numbers()}
    raise Error(f"transformers: {type(model).__name__} is trained with inputs that are not known here; write a function that returns it with them, and give FILE.py:FUNCTION")


LIBRARIES: dict[str, Callable[[str, Mapping[str, Any]], Named]] = {
    "timm": _of_timm, "torchvision": _of_torchvision, "transformers": _of_transformers}


def _of_file(path: str, function: str) -> Named:
    """A function that calls backward is a step. Another one returns a module with its arguments: (module, args), then perhaps keyword
    arguments (a dict) and a loss (a function)."""
    if not os.path.exists(path):
        raise Error(f"{path}: no such file")
    folder, file = os.path.split(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(os.path.splitext(file)[0], path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Error(f"{path}: {type(error).__name__} when it is imported: {_first_line(error)}; "
                    f"a device is there while '{function}' is called, so use it there, or give the program to metaprof run") from None
    found = getattr(module, function, None)
    if not callable(found):
        names = [name for name, each in vars(module).items() if inspect.isfunction(each) and each.__module__ == spec.name]
        raise Error(f"{path}: has no function '{function}'; it has {', '.join(names) or 'none'}")
    needed = [each.name for each in inspect.signature(found).parameters.values()
              if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if needed:
        raise Error(f"{path}:{function}: is called without arguments, and takes {', '.join(needed)}; write one that takes none")
    if "backward" in _names_in(found.__code__):
        return Named(found)
    try:
        given = found()
    except Exception as error:
        raise Error(f"{path}:{function}: {type(error).__name__}: {_first_line(error)}") from None
    return _returned(f"{path}:{function}", given)


def _names_in(code: Any) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if inspect.iscode(constant):
            names |= _names_in(constant)
    return names


def _returned(where: str, given: Any) -> Named:
    import torch

    parts = list(given) if isinstance(given, (tuple, list)) else []
    if len(parts) < 2 or not isinstance(parts[0], torch.nn.Module):
        raise Error(f"{where}: returns {type(given).__name__}; expected (module, inputs), or a function that calls backward")
    model, args, *rest = parts
    kwargs: dict[str, Any] = {}
    if isinstance(args, Mapping):
        args, kwargs = (), dict(args)
    loss = None
    for each in rest:
        if isinstance(each, Mapping):
            kwargs.update(each)
        elif callable(each):
            loss = each
        else:
            raise Error(f"{where}: returns {type(each).__name__} behind module and inputs; expected keyword arguments (a dict) or a loss (a function)")
    return Named(model, args, kwargs, loss)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]


def main(words: list[str]) -> int:
    name, path, text = words
    options = json.loads(text)
    try:
        try:
            import torch  # noqa: F401
        except ImportError:
            raise Error(f"{name}: {sys.executable} has no PyTorch; METAPROF_PYTHON or --interpreter names another Python") from None
        from ._steps import write_program

        found = named(name, options)
        chosen = {key: value for key, value in options.items() if key != "config"}
        write_program(found.model, found.args, path, found.kwargs, found.loss, chosen)
        if not hasattr(found.model, "parameters"):  # it has an optimizer of its own, or none
            open(path + ".step", "w").close()
        return 0
    except Error as error:
        _refuse(path, str(error))
    except Exception as error:  # of a library, while it makes the model
        _refuse(path, f"{name}: {type(error).__name__}: {_first_line(error)}")
    return 2


def _refuse(path: str, message: str) -> None:
    with open(path + ".error", "w", encoding="utf-8") as file:
        file.write(message)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
