"""The functions of the package."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

from . import _program
from ._results import Check, Diff, Fit, Profile, Run, Sweep

Model = Union[str, "os.PathLike[str]", Any]


@contextmanager
def _file_of(model: Model, args: Any, kwargs: Optional[dict], loss: Optional[Callable]) -> Iterator[str]:
    """The file of a model: its path, or that of an export that is removed afterwards."""
    if isinstance(model, (str, os.PathLike)):
        if args is not None or kwargs or loss:
            raise _program.Error("a file has its own inputs and loss: args, kwargs and loss are for modules")
        yield os.fspath(model)
        return
    if args is None and not kwargs:
        raise _program.Error("a module needs example arguments: metaprof.profile(model, (x, labels))")
    from ._export import write_export

    with tempfile.TemporaryDirectory() as folder:
        yield write_export(model, () if args is None else args, os.path.join(folder, type(model).__name__ + ".pt2"),
                           kwargs, loss)


def export(model: Any, args: Any, path: str, kwargs: Optional[dict] = None, loss: Optional[Callable] = None) -> str:
    """Writes a module's step as a `.pt2` without weights, for the command line. Returns the path."""
    from ._export import write_export

    return write_export(model, args, path, kwargs, loss)


def profile(model: Model, args: Any = None, *, kwargs: Optional[dict] = None, loss: Optional[Callable] = None,
            **options: Any) -> Profile:
    """What a training step of the model costs.

    model: an nn.Module, or the path of a .pt2, .mp, config.json or folder.
    args: example arguments of a module (a tuple); the last one is the target if the module gives no loss.
    loss: loss(output, target); else cross-entropy for integer targets, squared error for floating ones.
    options: as on the command line: device="rtx4090", precision="amp-bf16", optimizer="adamw", batch=8,
        memory="24GiB", checkpoint="model.layers.*", set={"input_ids": (2, 512)} …
    """
    with _file_of(model, args, kwargs, loss) as path:
        json, code = _program.call(["profile", path, *_program.option_words(options)])
    return Profile(json, fits=code == _program.FINE)


def fit(model: Model, args: Any = None, *, kwargs: Optional[dict] = None, loss: Optional[Callable] = None,
        **options: Any) -> Fit:
    """The largest batch of which a step fits, or the longest sequence: find="sequence"."""
    with _file_of(model, args, kwargs, loss) as path:
        json, _ = _program.call(["fit", path, *_program.option_words(options)])
    return Fit(json)


def sweep(model: Model, args: Any = None, *, kwargs: Optional[dict] = None, loss: Optional[Callable] = None,
          **options: Any) -> Sweep:
    """What steps cost for every combination of options that are lists: batch=[1, 2, 4], precision=["fp32", "bf16"]."""
    with _file_of(model, args, kwargs, loss) as path:
        json, _ = _program.call(["sweep", path, *_program.option_words(options)])
    return Sweep(json)


def check(model: Model, *, against: Union[str, list[str]], **options: Any) -> Check:
    """Estimates beside measurements: files of recordings, snapshots or earlier reports."""
    files = [against] if isinstance(against, str) else list(against)
    words = ["check", os.fspath(model), *_program.option_words(options)]
    for file in files:
        words += ["--against", file]
    json, code = _program.call(words)
    return Check(json, passed=code == _program.FINE)


def diff(before: Union[Profile, str], after: Union[Profile, str], **options: Any) -> Diff:
    """Two profiles, or the files of their JSON, compared."""
    import json as json_module

    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, report in (("before", before), ("after", after)):
            if isinstance(report, Profile):
                path = os.path.join(folder, name + ".json")
                with open(path, "w", encoding="utf-8") as out:
                    json_module.dump(report.json, out)
                files.append(path)
            else:
                files.append(os.fspath(report))
        json, code = _program.call(["diff", *files, *_program.option_words(options)])
    return Diff(json, different=code == _program.FINDING)


def run(program: list[str], **options: Any) -> Run:
    """Runs an unmodified program on an emulated device: metaprof.run(["train.py"], device="h200", steps=2)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        words = ["run", *_program.option_words(options), "--json", path, "--", *program]
        return Run(_program.run_to_file(words, path))


def assert_fits(model: Model, args: Any = None, **options: Any) -> Profile:
    """For tests: an AssertionError that says what the step needs, where it does not fit."""
    result = profile(model, args, **options)
    needed = result.peak.reserved
    assert result.fits, (
        f"{result.json['model']} does not fit {result.json['device']}: {needed:,} bytes are reserved at the peak"
        f" ({result.peak.phase}, {result.peak.op} in {result.peak.module or 'the model'})")
    return result
