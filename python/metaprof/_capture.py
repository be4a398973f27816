"""A training function, run on a device that need not be there."""

from __future__ import annotations

import functools
import os
import pickle
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _program
from ._results import Captured

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RunOptions


def capture(function: Optional[Callable[..., Any]] = None, **options: "Unpack[RunOptions]") -> Any:
    """A decorator: calling the function runs it in a process of its own on an emulated device, as `metaprof run` does.

        @metaprof.capture(steps=1, device="rtx4090")
        def train(batch):
            model = Net().cuda()
            …

        step = train(64)
        step.peak.allocated
        metaprof.profile(step, precision="bf16", optimizer="sgd")

    options: as of `run`; steps, the optimizer steps after which the function is ended, is 1 unless it is given.
    Returns what the function did (`Captured`) in place of its result; it is a model for profile, fit and sweep.
    The function and its arguments go to the process by value (cloudpickle), so it may stand in a notebook's cell. Error:
    its PyTorch is built without CUDA, it uses no device, cloudpickle is not there.
    """
    if function is None:
        return functools.partial(capture, **options)
    called: Callable[..., Any] = function

    @functools.wraps(called)
    def captured(*args: Any, **kwargs: Any) -> Captured:
        return _run_in_process(called, args, kwargs, {"steps": 1, **options})

    return captured


def _run_in_process(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                    options: dict[str, Any]) -> Captured:
    try:
        import cloudpickle
    except ImportError:
        raise _program.Error("metaprof.capture needs cloudpickle: pip install cloudpickle") from None
    folder = tempfile.TemporaryDirectory(prefix="metaprof-")
    name = os.path.join(folder.name, getattr(function, "__name__", "function"))
    with open(name + ".call", "wb") as file:
        pickle.dump(sys.path, file)
        cloudpickle.dump((function, args, kwargs), file)
    caller = os.path.join(os.path.dirname(__file__), "_call.py")
    words = ["run", *_program.option_words({"save": name + ".mp", **options}), "--json", name + ".json", "--",
             sys.executable, caller, name + ".call"]
    report = _program.run_to_file(words, name + ".json")
    return Captured(report, str(options.get("save") or name + ".mp"), folder)
