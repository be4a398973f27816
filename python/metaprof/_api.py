"""The functions of the package."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from . import _program
from ._results import Check, Diff, Fit, Profile, Report, Run, Sweep
from ._verdict import Fits

if TYPE_CHECKING:
    import torch
    from typing_extensions import Unpack

    from ._options import CheckOptions, DiffOptions, FitOptions, ProfileOptions, RunOptions, SweepOptions

Path = Union[str, "os.PathLike[str]"]
Model = Union[Path, "torch.nn.Module", Callable[..., Any]]  #: a Captured is a path, too
Args = Union[tuple[Any, ...], Mapping[str, Any], Any]
Loss = Union[Callable[..., Any], str, None]  #: a name is that of a configuration's loss, "transformers"


@contextmanager
def _words_of(model: Model, args: Args, kwargs: Optional[dict[str, Any]], loss: Loss,
              options: Mapping[str, Any]) -> Iterator[list[str]]:
    """The words of a model and its options: of a file, or of a module's captured steps, whose file is removed afterwards."""
    if isinstance(model, (str, os.PathLike)):
        if args is not None or kwargs or callable(loss):
            raise _program.Error("a file has its own inputs and loss: args, kwargs and loss are for modules")
        yield [os.fspath(model), *_program.option_words({**options, "loss": loss})]
        return
    if isinstance(loss, str):
        raise _program.Error(f"loss={loss!r}: a name is that of a configuration's loss; a module takes a function: loss(output, target)")
    if args is None and not kwargs:
        raise _program.Error("a module needs example arguments: metaprof.profile(model, (x, labels))")
    from ._steps import rest_of, write_program

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, getattr(model, "__name__", type(model).__name__).strip("<>") + ".mp")
        yield [write_program(model, args, path, kwargs, loss, options), *_program.option_words(rest_of(model, options))]


def _rows_of(command: str, model: Model, args: Args, kwargs: Optional[dict[str, Any]], loss: Loss,
             options: Mapping[str, Any]) -> dict[str, Any]:
    """The report of fit or sweep: of a module a capture for each combination of what captures follow."""
    from ._steps import combinations

    report: dict[str, Any] = {}
    for chosen in [{}] if isinstance(model, (str, os.PathLike)) else combinations(options):
        with _words_of(model, args, kwargs, loss, {**options, **chosen}) as words:
            json, _ = _program.call([command, *words])
        for row in json["rows"]:
            row.setdefault("options", {}).update(chosen)
        report = {**json, "rows": [*report.get("rows", []), *json["rows"]]}
    return report


def _fit_of_module(model: Any, args: Args, kwargs: Optional[dict[str, Any]], loss: Loss, options: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's report, in which captures at the answers have the last word. Where a number of the program does not follow another size,
    which is an error of the engine, captures alone tell."""
    from ._fit import checked, largest
    from ._inputs import size_of
    from ._optimizers import is_optimizer
    from ._steps import FOLLOWED, products

    find = str(options.get("find") or "batch")
    plain = {name: value for name, value in options.items() if name not in ("find", "plan")}

    limits: dict[int, str] = {}  # sizes with which the module cannot be called
    peaks: dict[tuple[int, int], dict[str, int]] = {}  # by row and size

    def fits_at(size: int, own: Mapping[str, Any], row: int) -> bool:
        try:
            step = profile(model, args, kwargs=kwargs, loss=loss, **{**own, find: size})  # type: ignore[typeddict-item]
            peaks[row, size] = {"peak_allocated_bytes": step.peak.allocated, "peak_reserved_bytes": step.peak.reserved}
            return bool(step.fits)
        except _program.Error as error:
            if "cannot be called" not in str(error):
                raise
            limits[size] = str(error)
            return False

    try:
        report = _rows_of("fit", model, args, kwargs, loss, options)
    except _program.Error as error:
        if "does not follow the new sizes" not in str(error) or options.get("plan"):
            raise
        rows = []
        for i, own in enumerate(products(plain)):
            found, count = largest(lambda size, own=own, i=i: fits_at(size, own, i), size_of(args, kwargs, find))  # type: ignore[misc]
            shown = {**own, "optimizer": type(own["optimizer"]).__name__} if is_optimizer(own.get("optimizer")) else own
            rows.append({"options": shown, "largest": found or None, "unbounded": False, "captures": count, "agree": None,
                         "limit": limits.get(found + 1), **peaks.get((i, found), {})})
        return {"schema": "metaprof.fit", "schema_version": 1, "rows": rows}
    if not options.get("plan"):
        for i, row in enumerate(report["rows"]):
            own = {name: row["options"].get(name, value) if isinstance(value, (list, tuple)) else value for name, value in plain.items()}
            found = checked(row, lambda size, own=own, i=i: fits_at(size, own, i))  # type: ignore[misc]
            size = found["largest"] or 0
            options_shown = {**row["options"], **{name: value for name, value in own.items() if name in FOLLOWED and name in row["options"]}}
            report["rows"][i] = {**found, **peaks.get((i, size), {}), "options": options_shown, "limit": limits.get(size + 1)}
    return report


def export(model: "torch.nn.Module", args: Args, path: Path, kwargs: Optional[dict[str, Any]] = None,
           loss: Optional[Callable[..., Any]] = None) -> str:
    """Writes a module's step as a `.pt2` without weights, for the command line. Arguments as of profile.

    Returns the path. Error: PyTorch cannot export the model, or it has no loss.
    """
    from ._export import write_export

    return write_export(model, args, os.fspath(path), kwargs, loss)


def profile(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None,
            loss: Loss = None, **options: "Unpack[ProfileOptions]") -> Profile:
    """What a training step of the model costs: bytes, and FLOPs with 2 for a multiply-add.

    model: an nn.Module, whose weights are neither copied nor changed and may lie on any device ("meta", too); or the path of
        a .pt2, .mp, config.json or a folder with one; or what a captured function did. A module's steps run in this process,
        on tensors of a device that is not there, and are captured as `metaprof run --save` captures a program's.
        A function that trains (calls backward and its optimizers itself) is called so, too: args are its arguments.
    args: example arguments of a module: a tuple of tensors of any device, or a mapping by name, as tokenizers give it.
        Their shapes and values are those of the step. Unless the module gives a scalar, or has a `loss` in its output, the
        last one is the target: of whole numbers, for cross-entropy with an output [N, …, classes] or [N, classes, …]; of
        floating ones, of the output's shape, for the squared error.
    kwargs: more arguments by name.
    loss: loss(output, target) in place of these, or loss(output); a scalar. Of a configuration: "plain" or "transformers", as --loss.
    options: as on the command line (ProfileOptions): device="rtx4090", precision="amp-bf16", batch=8, memory="24GiB",
        checkpoint="layers.*", set={"input_ids": (2, 512)} … optimizer: a name, "adamw", or an object with parameters of the
        module, whose class, options, groups and state are followed.

    Error: the program's message; or the line at which the module reads data of the device that nobody knows without running
    it. A step that does not fit is none: `fits` says it, and fits("t4") says it of another device.
    """
    def on(device: str) -> bool:
        return bool(profile(model, args, kwargs=kwargs, loss=loss, **{**options, "device": device}).fits)  # type: ignore[typeddict-item]

    with _words_of(model, args, kwargs, loss, options) as words, tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "timeline.svg")
        json, code = _program.call(["profile", *words, "--timeline", picture])
        with open(picture, encoding="utf-8") as file:
            return Profile(json, fits=Fits(code == _program.FINE, on), timeline=file.read())


def estimate_memory(model: Model, sample_input: Args = None, optimizer: Any = "adamw", **options: Any) -> Profile:
    """What training the model takes, under the names of pytorch/rfcs#108: `.fits(device)`, `.total_mb`, `.params_mb`, `.optimizer_mb`
    and `.activations_mb` of the result, in MiB. Arguments as of profile; optimizer: a name, or an object with the model's parameters."""
    return profile(model, sample_input, optimizer=optimizer, **options)


def fit(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None,
        loss: Loss = None, **options: "Unpack[FitOptions]") -> Fit:
    """The largest batch of which a step fits, or the longest sequence: find="sequence".

    Model and arguments as of profile; an option that is a list gives a row for each value. A module is captured again at the
    answer and at the next size: it fits at the one, and does not at the other. `agree` says whether the engine, which changes
    the sizes of one capture, had given the same answer.
    """
    if isinstance(model, (str, os.PathLike)):
        return Fit(_rows_of("fit", model, args, kwargs, loss, options))
    return Fit(_fit_of_module(model, args, kwargs, loss, options))


def sweep(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None,
          loss: Loss = None, **options: "Unpack[SweepOptions]") -> Sweep:
    """What steps cost for every combination of options that are lists: batch=[1, 2, 4], precision=["fp32", "bf16"].

    Model and arguments as of profile. shard="3/16" runs that part alone; Sweep.joined puts parts together.
    """
    return Sweep(_rows_of("sweep", model, args, kwargs, loss, options))


def rent(model: Path, **options: Any) -> Report:
    """Which cards a model needs, for full fine-tuning, LoRA, QLoRA and generation: rent("meta-llama/Llama-3.1-8B", context="32k").

    model: a name, a config.json or its folder. options: as of `metaprof rent`: device="rtx4090,h100", sequence=4096 …
    """
    with tempfile.TemporaryDirectory() as folder:
        json, text = _program.call_with_text(["rent", os.fspath(model), *_program.option_words(options)], os.path.join(folder, "report.json"))
    return Report(json, text)


def advise(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None, loss: Loss = None,
           **options: Any) -> Report:
    """Which switches make the step fit: each switch run, and the fewest that suffice together. Model and arguments as of profile."""
    return _report("advise", model, args, kwargs, loss, options)


def plan(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None, loss: Loss = None,
         **options: Any) -> Report:
    """What to recompute so that the step stays within budget="8GiB", or "60%" of its peak. Model and arguments as of profile."""
    return _report("plan", model, args, kwargs, loss, options)


def cudagraphs(model: Model, args: Args = None, *, kwargs: Optional[dict[str, Any]] = None, loss: Loss = None,
               **options: Any) -> Report:
    """Whether CUDA graphs can capture the step, and what that costs. Model and arguments as of profile."""
    return _report("cudagraphs", model, args, kwargs, loss, options)


def _report(command: str, model: Model, args: Args, kwargs: Optional[dict[str, Any]], loss: Loss,
            options: Mapping[str, Any]) -> Report:
    with _words_of(model, args, kwargs, loss, options) as words, tempfile.TemporaryDirectory() as folder:
        json, text = _program.call_with_text([command, *words], os.path.join(folder, "report.json"))
    return Report(json, text)


def check(model: Path, *, against: Union[Path, Sequence[Path], None] = None,
          baseline: Union[Path, Sequence[Path], None] = None, **options: "Unpack[CheckOptions]") -> Check:
    """Estimates beside measurements (files of recordings, snapshots), or beside earlier reports of `metaprof profile --json`.

    Not passed: a peak is off, or has grown, by more than tolerance="1%".
    """
    words = ["check", os.fspath(model), *_program.option_words(options)]
    for flag, files in (("--against", against), ("--baseline", baseline)):
        for file in [files] if isinstance(files, (str, os.PathLike)) else files or []:
            words += [flag, os.fspath(file)]
    json, code = _program.call(words)
    return Check(json, passed=code == _program.FINE)


def diff(before: Union[Profile, Path], after: Union[Profile, Path], **options: "Unpack[DiffOptions]") -> Diff:
    """Two profiles, or the files of their JSON, compared."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, report in (("before", before), ("after", after)):
            files.append(report.write(os.path.join(folder, name + ".json")) if isinstance(report, Profile)
                         else os.fspath(report))
        json, code = _program.call(["diff", *files, *_program.option_words(options)])
    return Diff(json, different=code == _program.FINDING)


def run(program: Sequence[str], **options: "Unpack[RunOptions]") -> Run:
    """Runs an unmodified program on an emulated device: metaprof.run(["train.py", "--epochs", "1"], device="h200", steps=2).

    program: its words; a first one that ends in .py is run by this Python. What it prints passes through.
    Error: it could not be run, or nothing was recorded; the program's own failure is in `exit_status`.
    """
    words = [os.fspath(word) for word in program]
    if words and words[0].endswith(".py"):
        words = [sys.executable, *words]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.json")
        return Run(_program.run_to_file(["run", *_program.option_words(options), "--json", path, "--", *words], path))


def assert_fits(model: Model, args: Args = None, **options: Any) -> Profile:
    """For tests: an AssertionError that says what the step needs, where it does not fit. Arguments as of profile."""
    result = profile(model, args, **options)
    if not result.fits:
        at = f", {result.peak.op} of {result.peak.module or 'the model'}" if result.peak.op else ""
        raise AssertionError(f"{result.json['model']}: {result!r}; the peak is in {result.peak.phase}{at}")
    return result
