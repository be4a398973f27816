"""Checkpointed regions, and what they and modules are given.

A checkpoint holds every tensor that it is given, whether a call in it takes it or not. Modules are written down alike, so that
the program tells what each would hold if it was computed again.
"""
from metaprof_recorder.text.arguments import word


class Regions:
    def __init__(self, capture):
        self._capture = capture
        self._line = None        # of the region that is open, among the program's
        self._given = ()         # tensors that it holds
        self._begun = 0          # how many calls there were before it
        self._asked = {}         # operator -> how many of its calls a policy has been asked about
        self._kept = {}          # operator -> numbers of calls whose results it keeps
        self.asks = False        # the region that is open asks a policy
        self.values_before = {}  # line of a region -> how many values there were when it was opened

    def is_open(self):
        return self._line is not None

    def is_reentrant(self):
        return self._line is not None and self._capture.program.lines[self._line] == "checkpoint reentrant {"

    def open(self, kind, given):
        """`kind`: "", "whole" or "reentrant" (docs/reference/program.md). `given`: the tensors that the region holds. False: it is inside another one, with which it is
        computed again."""
        capture = self._capture
        if not capture.active() or self._line is not None:
            return False
        capture.modes.write()  # whether a region keeps anything for backward depends on them
        calls = capture.now
        self._line, self._given, self._begun = len(calls.lines), given, len(calls.calls)
        self.values_before[self._line] = capture.values.count
        self._asked, self._kept, self.asks = {}, {}, False
        calls.lines.append(f"checkpoint {kind} {{" if kind else "checkpoint {")
        return True

    def close(self):
        capture, calls = self._capture, self._capture.now
        capture.modes.write()
        if self._kept:
            kept = " ".join(f"{word(name)}({', '.join(map(str, numbers))})" for name, numbers in self._kept.items())
            calls.lines[self._line] = calls.lines[self._line].replace("{", f"keep {kept} {{")
        keep_unused(capture, self._given, self._begun)
        if all(isinstance(calls.lines[index], int) for index in calls.calls[self._begun:]):
            calls.lines[self._line] = "# a checkpointed region without calls"
        else:
            calls.lines.append("}")
        self._line, self._given, self.asks = None, (), False

    def selective(self, contexts, caching):
        """`contexts()` of the region that is open, of which the first asks a policy about each call while the region runs."""
        def watched():
            forward, again = contexts()
            if isinstance(forward, caching):
                self.asks = self.is_open()
                policy, asked, kept = forward.policy_fn, self._asked, self._kept
                forward.policy_fn = lambda context, operator, *rest, **options: _note(asked, kept, operator, policy(context, operator, *rest, **options))
            else:
                self._capture.warn("a checkpoint has a context_fn of its own kind: the program has its region as one that keeps nothing; what it keeps is not known")
            return forward, again

        return watched


def _note(asked, kept, operator, answer):
    """Whether a policy keeps the results of a call, which is the n-th of its operator in the region."""
    name = operator.name()
    name = name if "::" in name else f"higher_order::{name}"
    number = asked[name] = asked.get(name, -1) + 1
    if answer is True or getattr(answer, "name", "") in ("MUST_SAVE", "PREFER_SAVE"):
        kept.setdefault(name, []).append(number)
    return answer


def keep_unused(capture, given, begun):
    """What was given and no call since the call `begun` has taken would be held with what these calls take."""
    calls = capture.now
    names = [calls.names.get(id(tensor)) for tensor in given]
    unused = [name for name in dict.fromkeys(names) if name is not None and name.gone is None and name.last < begun]
    if unused and calls.grad:
        scope = calls.modules[-1][0]
        capture.call(f"step::keep([{', '.join(f'%{capture.values.use(name())}' for name in unused)}]){f' in m{scope}' if scope else ''}")
