"""The largest size of a module's step that fits: the engine's answer from one capture, checked by captures at that size and the next."""

from __future__ import annotations

from typing import Any, Callable, Optional

MOST = 1 << 20  #: of a batch or a sequence that is looked for


def largest(fits_at: Callable[[int], bool], guess: Optional[int]) -> tuple[int, int]:
    """(the largest size that fits, 0: none; how many sizes were asked). `guess` is tried first, and the one behind it."""
    asked: dict[int, bool] = {0: True}

    def fits(size: int) -> bool:
        if size not in asked:
            asked[size] = fits_at(size)
        return asked[size]

    low, high = 0, max(guess or 1, 1)
    if fits(high):
        low, high = high, high + 1
        step = 1
        while high <= MOST and fits(high):
            low, step = high, 2 * step
            high += step
    while high - low > 1:
        middle = high - 1 if guess and high == guess else (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low, len(asked) - 1


def checked(row: dict[str, Any], fits_at: Callable[[int], bool]) -> dict[str, Any]:
    """A row of the engine's, whose answer is what captures at that size say. `captures`: how many; `agree`: whether the engine had said so."""
    found, count = largest(fits_at, None if row["unbounded"] else row["largest"])  # a size that nothing follows is one that the engine lost
    unbounded = found >= MOST
    agree = unbounded if row["unbounded"] else (row["largest"] or 0) == found
    return {**row, "largest": found or None, "unbounded": unbounded, "captures": count, "agree": agree}
