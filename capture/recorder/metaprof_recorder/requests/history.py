"""Every request of memory, with the operator, the module and the line that made it.

Two of torch's own recorders are joined. The allocator's history has each request and return with the bytes that were asked for, its
stream and the Python frames; the profiler has the operators, nested, the nodes that backward evaluates, and among them the
addresses that the allocator gave out and took back. Modules and cuts between phases are ranges that hooks put into the profiler.

The history is kept from the initialisation of CUDA on. The profiler runs in stretches: from the first call of a module, backward or optimizer on,
because what a program prepares before that may be very many operators of the host; and not where the program would notice it. The profiler keeps weak
references to arguments of operators, which torch.utils.swap_tensors refuses, and a thread has one profiler, which the program may want.
A stretch ends there, and another begins where the next phase does, unless a range of the last one is still open: a profiler does not
outlive those.
"""
import ctypes
import functools
import os
import threading
from os import getpid  # as it is now: the program may replace it
from time import time_ns  # as it is now: the program may replace it

from metaprof_recorder.process import environment
from metaprof_recorder.requests.items import Begin, End
from metaprof_recorder.requests.operators import CUT, MODULE, ends_open, in_order
from metaprof_recorder.requests.trace import RELEASES

MOST_REQUESTS = 4_000_000
LOG_ERRORS = 2  # c10's log levels: 0 information, 1 warnings, 2 errors


class _ThreadsEnd:
    """Held by a thread alone: goes when the thread does, and calls `ended` there."""

    def __init__(self, ended):
        self._ended = ended

    def __del__(self):
        self._ended()


class History:
    """`begin` and `end` once each; `resume`, `mark`, `enter`, `leave` cost nothing when it does not run."""

    def __init__(self, torch, wrappers):
        self._torch = torch
        self._wrappers = wrappers
        self._log_level = None
        self._thread = None      # whose operators are recorded
        self._of_thread = threading.local()
        self._profiles = False   # the profiler runs
        self._began = 0          # when it did, in ns
        self._is_wanted = False  # the program's own profiler runs, or is about to
        self._is_over = False    # a range outlived the last stretch
        self._stretches = []     # (begin, end) in ns of those that are over
        self._items = []         # of them, and cuts between them
        self.sees_twice = False  # a dispatch mode of the recorder's calls operators again
        self.running = False
        self.begun = False

    def begin(self):
        if self.begun:
            return
        torch = self._torch
        from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler
        from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig, _RecordFunctionFast
        self.begun = True
        self._thread = threading.get_ident()
        self._of_thread.end = _ThreadsEnd(self.pause)  # no other thread can ask for its profiler
        # By the end the program may have thrown torch out of sys.modules.
        self._prepare, self._enable, self._disable, self._range = _prepare_profiler, _enable_profiler, _disable_profiler, _RecordFunctionFast
        # state, shapes, memory, stacks, FLOPs, modules
        self._config = ProfilerConfig(ProfilerState.KINETO, True, True, False, False, False, _ExperimentalConfig())
        self._activities = {ProfilerActivity.CPU}
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=MOST_REQUESTS)
        self._quiet(True)
        self.running = True

    # ---- stretches of the profiler

    def resume(self):
        """A phase begins: operators are recorded from here on."""
        if not self.running or self._profiles or self._is_wanted or self._is_over or threading.get_ident() != self._thread:
            return
        self._began = time_ns()
        self._prepare(self._config, self._activities)
        self._enable(self._config, self._activities, set())
        self._profiles = True

    def pause(self):
        """Operators are recorded no longer, and nothing is kept that belongs to the program."""
        if not self._profiles or threading.get_ident() != self._thread:
            return
        self._profiles = False
        tree = self._disable().experimental_event_tree()
        self._stretches.append((self._began, time_ns()))
        self._is_over = ends_open(tree)
        self._items += in_order(tree, self.sees_twice)

    def give_way_to_program(self, recorder):
        """What the program does that cannot be done while the profiler runs."""
        profiler, utils = self._torch.autograd.profiler, self._torch.utils

        def watch(owner, name, before, after=lambda: None):
            original = getattr(owner, name, None)
            if original is None:
                return

            @functools.wraps(original)
            def call(*arguments, **options):
                if getpid() == recorder.pid:
                    before()
                try:
                    return original(*arguments, **options)
                finally:
                    after()

            setattr(owner, name, call)

        watch(utils, "swap_tensors", self.pause)
        watch(profiler, "_prepare_profiler", self._program_wants_profiler)
        watch(profiler, "_enable_profiler", self._program_wants_profiler)
        watch(profiler, "_disable_profiler", lambda: None, self._program_had_profiler)

    def _program_wants_profiler(self):
        self._is_wanted = self._is_wanted or threading.get_ident() == self._thread
        self.pause()

    def _program_had_profiler(self):
        if threading.get_ident() == self._thread:
            self._is_wanted = False

    # ---- ranges

    def mark(self, number):
        if self._profiles:
            with self._wrappers.seen(), self._range(f"{CUT}{number}"):
                pass
        elif self.running:
            now = time_ns()
            self._items += [Begin(f"{CUT}{number}", "cut", -1, (), now), End(now)]

    def enter(self, path):
        if not self._profiles:
            return None
        opened = self._range(MODULE + path)
        with self._wrappers.seen():
            opened.__enter__()
        return opened

    def leave(self, opened):
        if opened is not None:
            with self._wrappers.seen():
                opened.__exit__(None, None, None)

    # ---- the end

    def end(self):
        """What was recorded; None if it did not run."""
        if not self.running:
            return None
        self.running = False
        self.pause()
        self._quiet(False)
        snapshot = self._torch.cuda.memory._snapshot()
        self._torch.cuda.memory._record_memory_history(None)
        environment.allocator_settings(snapshot.get("allocator_settings", {}))
        return Found(self._items, [_whole_releases(entries, snapshot) for entries in snapshot["device_traces"]], self._stretches)

    def abandon(self):
        """Keeps nothing of what was recorded."""
        self.running = False
        self._quiet(False)
        self._torch.cuda.memory._record_memory_history(None)

    def _quiet(self, on):
        """While the profiler runs torch's C++ log says only errors: it would warn of every host block that is older than the profiler."""
        if on and "TORCH_CPP_LOG_LEVEL" in os.environ:
            return
        try:
            library = ctypes.CDLL(os.path.join(os.path.dirname(self._torch.__file__), "lib", "libc10.so"))
            level = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            return
        if on:
            self._log_level, level.value = level.value, LOG_ERRORS
        elif self._log_level is not None:
            level.value = self._log_level


def _whole_releases(entries, snapshot):
    """The entries without those of segments that went back to the device, where these may be some of the cached ones only: what the
    settings make the allocator give back by itself its model gives back, too."""
    settings = snapshot.get("allocator_settings", {})
    if settings.get("max_split_size", -1) < 0 and not settings.get("garbage_collection_threshold"):
        return entries
    return [entry for entry in entries if entry["action"] not in RELEASES]


class Found:
    """`items`: of the profiler; `traces`: of the allocator, a list of entries for each device; `stretches`: when the profiler ran."""

    def __init__(self, items, traces, stretches):
        self.items = items
        self.traces = traces
        self.stretches = stretches

    def by_device(self):
        for device, entries in enumerate(self.traces):
            if any(entry["action"] == "alloc" for entry in entries):
                yield device, (self.items, entries, self.stretches)
