"""The recorder, of which `metaprof run` makes use in other processes: here it captures in this one."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

from . import _program

NAME = "metaprof_recorder"


def _folder() -> str:
    """Where the program has it: capture/launch/installation.cpp."""
    given = os.environ.get("METAPROF_RECORDER")
    here = os.path.dirname(os.path.realpath(_program.program_path()))
    for folder in [given] if given else [os.path.join(here, "..", "recorder"), os.path.join(here, "..", "lib", "metaprof", "recorder")]:
        if os.path.exists(os.path.join(folder, NAME, "__init__.py")):
            return os.path.join(os.path.realpath(folder), NAME)
    raise _program.Error("the recorder is not beside the program metaprof; METAPROF_RECORDER names its folder")


def recording() -> Any:
    """The module with `Recording` and `Refused`. Its folder does not come into the path of modules."""
    if NAME not in sys.modules:
        folder = _folder()
        spec = importlib.util.spec_from_file_location(NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder])
        if spec is None or spec.loader is None:
            raise _program.Error(f"{folder}: this is no package")
        sys.modules[NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    from importlib import import_module

    return import_module(NAME + ".fake.recording")
