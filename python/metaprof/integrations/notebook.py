"""A cell of a notebook as a program of its own, on an emulated device.

    %load_ext metaprof.integrations.notebook

    %%metaprof --device rtx4090 --steps 2
    import torch …
"""

from __future__ import annotations

import os
import shlex
import tempfile
from typing import Any

from .._api import run
from .._program import Error
from .._results import Run


def words_to_options(words: list[str]) -> dict[str, Any]:
    """["--device", "t4", "--fixes"] is {"device": "t4", "fixes": True}. Error: a word belongs to no option."""
    options: dict[str, Any] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].replace("-", "_").partition("=")
            options[name] = value if equals else True
        elif name and options[name] is True:
            options[name] = word
        else:
            raise Error(f"%%metaprof: '{word}' belongs to no option; write --device rtx4090 --steps 2")
    return options


def profiled_cell(line: str, cell: str) -> Run:
    """Runs the cell's text as a program."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cell.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(cell)
        return run([path], **words_to_options(shlex.split(line)))


def load_ipython_extension(ipython: Any) -> None:
    ipython.register_magic_function(profiled_cell, "cell", "metaprof")
