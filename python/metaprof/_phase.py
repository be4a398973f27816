"""Names for parts of a program, as rows of the report of `metaprof run`."""

from __future__ import annotations

import os
import sys
from contextlib import ContextDecorator
from typing import Any


class _Nothing(ContextDecorator):
    def __enter__(self) -> "_Nothing":
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def phase(name: str) -> Any:
    """A part of the program that gets a row with its peak in the report of `metaprof run`. Outside `metaprof run` it does nothing.

        with metaprof.phase("build the index"):
            index = encode(documents)

    Also a decorator of functions; import torch first. A part with a training step in it has no row: the step's phases have theirs.
    """
    torch = sys.modules.get("torch")
    if torch is None or not os.environ.get("METAPROF_RECORD"):
        return _Nothing()
    part = torch.profiler.record_function(name)
    part.named_by_program = True  # as a decorator it is entered by PyTorch's code: the recorder asks for this
    return part
