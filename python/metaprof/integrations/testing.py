"""Of pytest: fixtures for tests that say which card a step must fit.

    def test_the_model_fits(metaprof_fits):
        metaprof_fits(model, (x, labels))           # the card that --metaprof-device names, or metaprof_device in pytest.ini

    def test_the_step_has_not_grown(metaprof_baseline):
        metaprof_baseline("step.json", model, (x, labels))   # --metaprof-accept writes it
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable

import pytest

from .._api import assert_fits, profile
from .._results import Profile

TOLERANCE = 0.01  #: of a peak, as of metaprof check
FIGURES = "allocated_bytes", "reserved_bytes"  #: that are compared


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("metaprof")
    group.addoption("--metaprof-device", help="the card that steps must fit")
    group.addoption("--metaprof-accept", action="store_true", help="write baselines of steps, or write them anew")
    parser.addini("metaprof_device", "the card that steps must fit", default="h200")


def _device(config: Any) -> str:
    return str(config.getoption("--metaprof-device") or config.getini("metaprof_device"))


@pytest.fixture
def metaprof_fits(request: Any) -> Callable[..., Profile]:
    """A function as metaprof.assert_fits, with the card of this run of tests."""
    def fits(model: Any, args: Any = None, **options: Any) -> Profile:
        return assert_fits(model, args, **{"device": _device(request.config), **options})

    return fits


def _accepted(path: str, device: str) -> dict[str, int]:
    """The peaks of a baseline. AssertionError: there is none, or it is of another card."""
    if not os.path.exists(path):
        raise AssertionError(f"{path} is not there: --metaprof-accept writes it")
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        of, peaks = report["device"], {figure: int(report["peak"][figure]) for figure in FIGURES}
    except (ValueError, KeyError, TypeError) as error:
        raise AssertionError(f"{path} is no report of a step ({type(error).__name__}: {error}): --metaprof-accept writes it anew") from error
    if of != device:
        raise AssertionError(f"{path} is of the card {of}, and this step of {device}: --metaprof-accept writes it anew")
    return peaks


@pytest.fixture
def metaprof_baseline(request: Any) -> Callable[..., Profile]:
    """A function that compares a step's peaks with a file beside the test, which --metaprof-accept writes."""
    def compare(name: str, model: Any, args: Any = None, tolerance: float = TOLERANCE, **options: Any) -> Profile:
        path = os.path.join(os.path.dirname(str(request.node.fspath)), name)
        now = profile(model, args, **{"device": _device(request.config), **options})
        if request.config.getoption("--metaprof-accept"):
            now.write(path)
            return now
        for figure, was in _accepted(path, now.json["device"]).items():
            is_now = now.json["peak"][figure]
            if is_now > was * (1 + tolerance):
                raise AssertionError(f"{name}: {figure} of the peak grew from {was} to {is_now} ({100 * (is_now / was - 1):+.1f} %); "
                                     "--metaprof-accept takes it")
        return now

    return compare
