"""Whether a step fits a device."""

from __future__ import annotations

from typing import Any, Callable, Optional


class Fits:
    """True or False for the device that was asked for; called with another one, for that: `result.fits("rtx4090")`."""

    def __init__(self, fits: bool, on: Optional[Callable[[str], bool]] = None):
        self._fits, self._on = fits, on

    def __bool__(self) -> bool:
        return self._fits

    def __call__(self, device: str) -> bool:
        if self._on is None:
            raise TypeError("this result knows one device: profile the model for the other")
        return self._on(device)

    def __eq__(self, other: Any) -> bool:
        return bool(self) == bool(other)

    def __hash__(self) -> int:
        return hash(self._fits)

    def __repr__(self) -> str:
        return repr(self._fits)
