"""What the program knows of a device."""

from __future__ import annotations

import functools
from typing import Any

from . import _program

DEFAULT = "h200"  #: as on the command line


def description_of(name: Any) -> dict[str, Any]:
    """What a program may ask a device: its name, capability, memory_bytes and multiprocessors."""
    known = _known()
    row = known.get(str(name or DEFAULT)) or known[DEFAULT]  # of a file, or unknown: the command line says what is wrong
    major, minor = row["capability"].split(".")
    return {"name": row["title"], "capability": (int(major), int(minor)), "memory_bytes": row["memory_bytes"],
            "multiprocessors": row["multiprocessors"]}


@functools.lru_cache(maxsize=None)
def _known() -> dict[str, Any]:
    return {row["name"]: row for row in _program.call(["devices"])[0]["devices"]}
