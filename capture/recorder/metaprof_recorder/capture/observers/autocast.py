"""Regions in which autocast is on or off."""
import contextlib
import functools

from metaprof_recorder.process.import_hook import after_import


def install(capture):
    autocast = capture.torch.amp.autocast_mode.autocast
    enter, leave = autocast.__enter__, autocast.__exit__

    @functools.wraps(enter)
    def entered(self):
        result = enter(self)
        torch = capture.torch
        if capture.active():
            dtype = capture.constants.text(torch.get_autocast_dtype("cuda"))
            capture.step(f"autocast_enter({torch.is_autocast_enabled('cuda')}, {dtype}, {torch.is_autocast_cache_enabled()})")
        return result

    @functools.wraps(leave)
    def left(self, *arguments):
        if capture.active():
            capture.step("autocast_leave()")
        return leave(self, *arguments)

    capture.patches.set(autocast, "__enter__", entered)
    capture.patches.set(autocast, "__exit__", left)
    capture.patches.later(after_import("transformers.utils.generic", lambda module: _watch_maybe_autocast(capture, module)))


def _watch_maybe_autocast(capture, module):
    """transformers leaves out a region that switches autocast off where it is off. With autocast on, the program would have it."""
    original = getattr(module, "maybe_autocast", None)
    if original is None:
        return

    @functools.wraps(original)
    def call(*arguments, **options):
        context = original(*arguments, **options)
        return Off(capture) if isinstance(context, contextlib.nullcontext) and capture.active() else context

    capture.patches.set(module, "maybe_autocast", call)


class Off:
    """A region of the program in which autocast is off, where it is off already."""

    def __init__(self, capture):
        self._capture = capture

    def __enter__(self):
        dtype = self._capture.constants.text(self._capture.torch.get_autocast_dtype("cuda"))
        self._capture.step(f"autocast_enter(False, {dtype}, True)")

    def __exit__(self, *_):
        self._capture.step("autocast_leave()")
