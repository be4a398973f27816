"""Which card a training will run on."""

from __future__ import annotations

from typing import Optional

from .. import _program
from .._devices import DEFAULT


def device_of(given: Optional[str]) -> str:
    """`given`, or the card that is here, or the default of metaprof."""
    if given:
        return given
    try:
        import torch

        if torch.cuda.is_available():
            title = torch.cuda.get_device_name()
            for row in _program.call(["devices"])[0]["devices"]:
                if row["title"] == title:
                    return str(row["name"])
    except (ImportError, RuntimeError):
        pass
    return DEFAULT
