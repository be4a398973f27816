"""From what a program does to the phases of a training step: setup, then per step forward, backward, optimizer, zero_grad.

Knows nothing of torch. What is observed are beginnings and ends of forward calls of outermost modules, of backward, of
optimizer steps and of zero_grad; what lies between two of them has to belong to one of its neighbours:

    before the first forward            setup; what an optimizer's constructor takes last belongs to the first forward
    after a forward                     the forward: the loss is computed there
    after a backward, only freed        the backward: the loss goes there
    between backward and optimizer      the optimizer: gradients are unscaled and clipped there
    after an optimizer step             the optimizer, if zero_grad follows (a gradient scaler is updated there), else the next forward
    before a forward                    the forward: inputs are copied there

A step ends with the forward that follows an optimizer step. Programs without an optimizer count every forward as a step.

What a program does besides (loading, evaluating, saving) lies within these phases. Where it takes memory its rows have names (activities.py).
"""
from itertools import groupby

from metaprof_recorder.phases.activities import Activities
from metaprof_recorder.phases.statistics import merged

FEWEST_CALLS = 4    # of which it can be said that each leaves memory
MOST_UNEVEN = 1.5   # of one call's growth to another's
MOST_PARTS = 1000  # forwards without a backward that are kept apart until it is known what they belong to


class Segment:
    """A stretch between two observations. `number`: of the cut that ended it; `devices`: device -> row of statistics."""

    def __init__(self, number, devices, constructor=False):
        self.number = number
        self.devices = devices
        self.constructor = constructor
        self.activity = None  # what the program did in it besides training: an Activity

    def changes_from(self, before):
        """Whether anything was allocated in it, or freed."""
        return any(row["allocated_bytes"] != {"current": current, "peak": current} for row, current in self._with_start(before))

    def grows_from(self, before):
        """Whether there was more allocated in it than before."""
        return any(row["allocated_bytes"]["peak"] > current for row, current in self._with_start(before))

    def is_less_than(self, before):
        """Whether less is allocated at its end than was at the end of an earlier one."""
        return any(row["allocated_bytes"]["current"] < current for row, current in self._with_start(before))

    def _with_start(self, before):
        for device, row in self.devices.items():
            start = before.devices.get(device) if before else None
            yield row, start["allocated_bytes"]["current"] if start else 0


class Row:
    """A phase of a step: the segments from `first` to `last`, and their statistics by device. `name`: what the program did, else the phase."""

    def __init__(self, phase, step, segments, name=None, first=None):
        self.phase = phase
        self.name = name or phase
        self.step = step
        self.segments = segments
        self.growth = {}  # device -> (module, calls, bytes that each leaves at least)
        self.first = segments[0].number if first is None else first
        self.last = segments[-1].number
        devices = sorted({device for segment in segments for device in segment.devices})
        self.devices = {device: merged([s.devices[device] for s in segments if device in s.devices]) for device in devices}


def _growth_by_call(parts):
    """device -> (module, calls, bytes that each leaves at least) of the first module of which every call leaves memory, and none much more
    than another. `parts`: (name of the outermost module, segments) of each forward of a phase."""
    found = {}
    for name in dict.fromkeys(name for name, _ in parts):
        ends = [segments[-1] for called, segments in parts if called == name]
        for device in ends[-1].devices if len(ends) >= FEWEST_CALLS else ():
            allocated = [segment.devices[device]["allocated_bytes"]["current"] for segment in ends if device in segment.devices]
            grown = [after - before for before, after in zip(allocated, allocated[1:])]
            if len(allocated) >= FEWEST_CALLS and min(grown) > 0 and max(grown) <= MOST_UNEVEN * min(grown):
                found.setdefault(device, (name, len(allocated), min(grown)))
    return found


class Phases:
    """`measure()` gives the Segment since it was last called; `emit(row)` takes a finished Row."""

    def __init__(self, measure, emit):
        self._measure_since = measure
        self._emit_row = emit
        self.activities = Activities(self._cut)
        self._shown = None      # the latest segment of the rows so far
        self.phase = "setup"
        self.step = 0
        self.stepped = False    # an optimizer has stepped since the last forward began
        self._segments = []     # of the phase
        self._gap = []          # after its end
        self._ended = False
        self._last = self._start = None  # the latest cut, and the one before the phase
        self._parts = []        # earlier forwards of the same forward phase: the outermost module's name, and segments
        self._module = ""       # of the forward in progress
        self._grad = True       # gradients are recorded in the forward in progress
        self._ran_out = False   # memory ran out in the phase: what a program does that has caught it is another try
        self.trains = False     # there is an optimizer, or a backward has been seen
        self._setup_parts = []

    @property
    def name(self):
        """What the program does now, as rows have it."""
        activity = self.activities.now
        return self.phase if activity is None or activity.name is None else activity.name

    @property
    def calls(self):
        """Forwards of the phase in progress, without a backward between them."""
        return len(self._parts) + 1 if self.phase == "forward" else 0

    # ---- observations

    def setup_goes_on(self):
        """More memory is in use than before. Rows do not show it."""
        self._segments.append(self._measure())

    def constructor_begins(self):
        self.trains = True
        if self.phase == "setup":
            self._segments.append(self._measure())

    def constructor_ends(self):
        if self.phase == "setup":
            segment = self._measure()
            segment.constructor = True
            self._segments.append(segment)

    def forward_begins(self, grad, module="", of_trained=False):
        """`grad`: whether autograd records it; `module`: its name, of the only one its type; `of_trained`: as of activities. True: a new step begins."""
        self._cut()
        self.activities.forward_begins(grad, self.trains, of_trained)
        if self.phase == "forward" and not self._ended and not self._ran_out:
            self._another_forward(grad)
            self._module = module
            return False
        gap = self._finish_row()
        new_step = self.stepped
        self.step += self.stepped
        self.stepped = False
        self._begin("forward", gap)
        self._grad = grad
        self._module = module
        return new_step

    def forward_ends(self, length=0):
        """An outermost module's call ends; what follows is of the forward, too. `length`: as of activities."""
        self.activities.forward_ends(length)
        if self.phase == "forward" and not self._ended:
            self._segments.append(self._measure())

    def backward_begins(self):
        self.trains = True
        if self.phase == "backward":
            return self._resume()
        self._cut()
        self.activities.training_goes_on()
        segments = [None, *self._segments, *self._gap]
        gap = self._finish_row() if self.phase != "forward" else []
        before = segments[len(segments) - len(gap) - 1:]
        if any(segment.grows_from(former) for former, segment in zip(before, gap)):  # a model without modules: what came since is its forward
            self.step += self.stepped
            self.stepped = False
            self._begin("forward", gap)
            gap = []
        self._finish_row()
        return self._begin("backward", gap)

    def backward_ends(self):
        self._end()

    def optimizer_begins(self):
        self.trains = True
        if self.phase == "optimizer":
            return self._resume()
        self._cut()
        self.activities.training_goes_on()
        gap = self._finish_row()
        return self._begin("optimizer", gap)

    def gradients_are_prepared(self):
        """Unscaling and clipping begin: a place to tell what only ends the backward from what belongs to the optimizer."""
        if self._ended:
            self._cut()

    def optimizer_ends(self):
        self.stepped = True
        self._end()

    def zero_grad_begins(self):
        if self.phase == "setup":
            return None
        self._cut()
        self.activities.training_goes_on()
        if self.phase == "zero_grad":
            return self._resume()
        if self.phase == "optimizer":
            self._segments += self._gap
            self._gap = []
        gap = self._finish_row()
        return self._begin("zero_grad", gap)

    def zero_grad_ends(self):
        if self.phase == "zero_grad":
            self._end()

    def memory_ran_out(self):
        """A request of the phase in progress failed. If the program goes on, its next forward has a row of its own."""
        self._ran_out = True

    def finish(self, whole=True):
        """The program ends. `whole`: what came after the last phase is shown as one of its own, if it took memory."""
        before = (self._gap or self._segments or [None])[-1]
        self._cut()
        self._leave_out_last_frees(before)
        gap = self._finish_row()
        if whole and any(segment.grows_from(before) for segment in gap):
            self._emit("after", gap)

    def _leave_out_last_frees(self, before):
        """After the last observation the program's end may free what was there before the phase: that is of no phase."""
        rest = self._gap if self._ended else self._segments
        if before is not None and not rest[-1].grows_from(before) and rest[-1].is_less_than(self._start):
            rest.pop()

    # ---- rows

    def _measure(self):
        segment = self._measure_since()
        segment.activity = self.activities.now
        return segment

    def _emit(self, phase, segments, growth=None):
        """Rows of a phase: one, or one for each thing that the program did within it and that took memory. `growth`: (of calls, their last cut)."""
        rows, first = [], segments[0].number
        for name, takes, part in self._by_name(segments):
            if rows and (rows[-1].name == (name or phase) or not takes):
                rows[-1] = Row(phase, self.step, rows[-1].segments + part, rows[-1].name, rows[-1].first)
            elif takes or part[-1] is segments[-1]:
                rows.append(Row(phase, self.step, part, name, first))
            else:  # nothing came before something that has a name: its peak is that of the row before
                continue
            first = part[-1].number + 1
        for row in rows:
            if growth and row.first <= growth[1] <= row.last and row.name != "generate":  # whose cache grows
                row.growth = growth[0]
            self._emit_row(row)

    def _by_name(self, segments):
        """(name, whether it took memory, segments) of stretches of one activity; the name is None where it took none."""
        for activity, part in groupby(segments, lambda segment: segment.activity):
            part = list(part)
            takes = any(now.grows_from(before) for before, now in zip([self._shown, *part], part))
            self._shown = part[-1]
            yield activity.name if activity is not None and takes else None, takes, part

    def _cut(self):
        self._last = self._measure()
        (self._gap if self._ended else self._segments).append(self._last)

    def _begin(self, phase, segments=()):
        self.phase = phase
        self._segments = list(segments)
        self._gap = []
        self._ended = False
        self._ran_out = False
        self._start = self._last

    def _end(self):
        self._cut()
        self._ended = True

    def _resume(self):
        self._segments += self._gap
        self._gap = []
        self._ended = False

    def _another_forward(self, grad):
        """A forward begins where there was one already, and no backward between them: the same phase, or a step without one."""
        self._parts.append((self._module, self._segments))
        if not (grad or self._grad or self.activities.evaluates) or len(self._parts) >= MOST_PARTS:
            self._emit_parts()
        self._begin("forward")
        self._grad = grad

    def _emit_parts(self):
        for _, segments in self._parts:
            self._emit("forward", segments)
            self.step += not self.trains
        self._parts = []

    def _finish_row(self):
        """Emits the phase in progress; gives the segments that came after it."""
        gap, segments, growth = self._gap, self._segments, None
        self._gap = []
        if self.phase == "setup":
            segments, gap = self._setup_and_rest()
        elif self.phase == "backward":
            segments, gap = self._with_last_frees(segments, gap)
        elif self.phase == "forward":
            if self.trains:
                growth = _growth_by_call(self._parts), self._parts[-1][1][-1].number if self._parts else 0  # the last call has no next one that would tell its end
                segments = [segment for _, part in self._parts for segment in part] + segments
                self._parts = []
            else:
                self._emit_parts()
        if segments:
            self._emit(self.phase, segments, growth)
        self._segments = []
        return gap

    @staticmethod
    def _with_last_frees(segments, gap):
        """What is only freed right after a backward (the loss that was scaled for it) is its end."""
        while segments and gap and not gap[0].grows_from(segments[-1]):
            segments, gap = segments + gap[:1], gap[1:]
        return segments, gap

    def _setup_and_rest(self):
        """Setup ends before the last constructor of an optimizer, unless something else came after that."""
        segments = self._segments
        end = len(segments)
        while end > 1:
            segment, before = segments[end - 1], segments[end - 2]
            if not segment.constructor and segment.changes_from(before):
                break
            end -= 1
        if not any(segment.constructor for segment in segments[end:]):
            end = len(segments)
        return segments[:end], segments[end:]
