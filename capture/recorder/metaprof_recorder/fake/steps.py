"""The phases of a function that trains: what it calls says where they begin, as in a recorded program (phases/training_step.py)."""
import functools

from metaprof_recorder.phases.training_step import Phases, Segment


class Steps:
    """`cut()` ends a stretch and gives its number; `lines()` says how many lines there are so far; `is_here()`: whether a thread is the one that counts."""

    def __init__(self, torch, patches, cut, lines, is_here):
        self._torch, self._patches, self._cut, self._lines, self._is_here = torch, patches, cut, lines, is_here
        self.rows = []  # (phase, step, first cut, last cut)
        self.phases = Phases(self._measure, lambda row: self.rows.append((row.phase, row.step, row.first, row.last)))
        self._depth = {}  # of calls within calls, by what they are
        self._before = 0  # lines at the last cut
        self._called = 0  # lines of what was called

    def _measure(self):
        """Whether anything was called stands in the place of bytes: what is only freed calls nothing."""
        self._called += self._lines() - self._before
        cut = self._cut()
        self._before = self._lines()  # the cut is a line, too
        return Segment(cut, {0: {"allocated_bytes": {"current": self._called, "peak": self._called}}})

    def finish(self):
        """Nothing is called any more. Forwards before the first backward are no steps of their own: the function trains, which was not known then."""
        self.phases.finish()
        first = next((step for phase, step, *_ in self.rows if phase == "backward"), 0)
        joined = []
        for phase, step, begin, end in self.rows:
            step = max(step - first, 0)
            if joined and joined[-1][:2] == (phase, step):
                begin = joined.pop()[2]
            joined.append((phase, step, begin, end))
        self.rows[:] = joined

    def install(self):
        torch = self._torch
        self._around(torch.autograd, "backward", self.phases.backward_begins, self.phases.backward_ends)
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            self._around(owner, "zero_grad", self.phases.zero_grad_begins, self.phases.zero_grad_ends)
        for owner, name in ((torch.nn.utils, "clip_grad_norm_"), (torch.nn.utils, "clip_grad_value_")):
            self._around(owner, name, self.phases.gradients_are_prepared, lambda: None)
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        self._patches.later(register_optimizer_step_pre_hook(lambda *_: self._if_here(self.phases.optimizer_begins)).remove)
        self._patches.later(register_optimizer_step_post_hook(lambda *_: self._if_here(self.phases.optimizer_ends)).remove)

    def _if_here(self, function):
        if self._is_here():
            function()

    def forward_begins(self):
        """Of an outermost module. Within a backward, what a checkpoint computes again is none."""
        if not self._depth.get("backward"):
            self.phases.forward_begins(self._torch.is_grad_enabled())

    def forward_ends(self):
        if not self._depth.get("backward"):
            self.phases.forward_ends()

    def _around(self, owner, name, begins, ends):
        original = getattr(owner, name)

        @functools.wraps(original)
        def call(*arguments, **options):
            if not self._is_here():
                return original(*arguments, **options)
            self._depth[name] = self._depth.get(name, 0) + 1
            if self._depth[name] == 1:
                begins()
            try:
                return original(*arguments, **options)
            finally:
                self._depth[name] -= 1
                if self._depth[name] == 0:
                    ends()

        self._patches.set(owner, name, call)
