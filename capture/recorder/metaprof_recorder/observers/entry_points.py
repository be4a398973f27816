"""PyTorch's entry points by which a program loads, resumes, saves and changes modes, and the ranges that it names."""
import functools

RANGES = "_metaprof_range"  # of a range of the program's own: the activity


class Entries:
    """`begins(name, holds_steps)` gives an activity for `ends`, or None where nothing is observed; `mode(trains)` as of activities;
    `is_own()`: whether the function that calls the recorder's is of the program itself."""

    def __init__(self, torch, begins, ends, mode, is_own):
        self._torch, self._begins, self._ends, self._mode, self._is_own = torch, begins, ends, mode, is_own
        self._changes_mode = False

    def install(self):
        torch = self._torch
        module, optimizer = torch.nn.Module, torch.optim.Optimizer
        for owner, name, activity in ((torch, "load", "load"), (module, "load_state_dict", "load"), (optimizer, "load_state_dict", "resume"),
                                      (torch, "save", "save"), (module, "state_dict", "save"), (optimizer, "state_dict", "save")):
            setattr(owner, name, self._within(getattr(owner, name), activity))
        module.train = self._around_train(module.train)
        self._watch_ranges(torch.autograd.profiler.record_function)

    def _within(self, original, name):
        @functools.wraps(original)
        def call(*arguments, **options):
            activity = self._begins(name, False)
            try:
                return original(*arguments, **options)
            finally:
                self._ends(activity)
        return call

    def _around_train(self, original):
        @functools.wraps(original)
        def train(module, mode=True):
            if self._changes_mode or self._torch.compiler.is_compiling():
                return original(module, mode)
            self._changes_mode = True
            try:
                self._mode(mode)
                return original(module, mode)
            finally:
                self._changes_mode = False
        return train

    def _watch_ranges(self, kind):
        enter, leave = kind.__enter__, kind.__exit__

        @functools.wraps(enter)
        def begin(record):
            if self._is_own() or getattr(record, "named_by_program", False):  # metaprof.phase
                setattr(record, RANGES, self._begins(record.name, False))
            return enter(record)

        @functools.wraps(leave)
        def end(record, *error):
            self._ends(record.__dict__.pop(RANGES, None))
            return leave(record, *error)

        kind.__enter__, kind.__exit__ = begin, end
