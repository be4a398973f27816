"""Waits for the program to import torch, and attaches the recorder when it has."""
import os
import sys

from metaprof_recorder.process.import_hook import after_import
from metaprof_recorder.process.output import Output

OLDEST, NEWEST = (2, 6), (2, 15)  # versions of PyTorch whose hooks are known
CANNOT_BE_RECORDED = 2  # exit status


def attach():
    """Called once per interpreter, before the program's first line."""
    output = Output(os.environ["METAPROF_RECORD"])
    output.header()
    after_import("torch", lambda torch: _torch_is_there(torch, output))


def version_of(text):
    """(2, 11) of "2.11.0+cu130"; None of anything else."""
    parts = text.split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return None


def problem_with(version, cuda):
    """Why this PyTorch cannot be recorded, as (kind, sentence); None if it can. `cuda`: the CUDA that it was built with, or None."""
    number = version_of(version)
    unknown = number is not None and number > NEWEST and os.environ.get("METAPROF_RECORD_UNKNOWN")
    if number is None or not OLDEST <= number <= NEWEST and not unknown:
        known = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
        return "version", f"PyTorch {version} is not known: install one of {known}"
    if cuda is None:
        return "cpu-only", f"PyTorch {version} is built for the CPU only: install one that is built with CUDA (no GPU is needed)"
    return None


def _torch_is_there(torch, output):
    version = getattr(torch, "__version__", None)
    if version is None or not hasattr(torch, "version"):
        give_up(output, "no-torch", f"the module torch that it imports is not PyTorch: {getattr(torch, '__file__', None)}")
    output.write("torch", version=version, cuda=torch.version.cuda)
    problem = problem_with(version, torch.version.cuda)
    if problem:
        give_up(output, *problem)
    try:
        from metaprof_recorder.recorder import Recorder
        Recorder(torch, output).install()
    except Exception as error:  # noqa: BLE001 - a PyTorch that was built or patched otherwise
        give_up(output, "attach", f"the recorder cannot be attached to PyTorch {version}: {error!r}")


def give_up(output, kind, text, leave=os._exit):
    """Ends the program: what it costs would not be known."""
    output.problem(kind, text)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    leave(CANNOT_BE_RECORDED)
