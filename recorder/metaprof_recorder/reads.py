"""What the program reads of the device's data: an emulated device says of each copy to the host that it happens.

Each is noted with the line of the program that ran in the copying thread, and with its time: the operators that the profiler saw
then say which of them it was for.
"""
import bisect
import ctypes
import struct
import threading
from time import time_ns  # as it is now: the program may replace it

from metaprof_recorder import generation
from metaprof_recorder.items import Begin

MOST_KEPT = 1_000_000  # reads of which the operator is looked for
# torch checks there whether all values are allowed, and refuses zeros that a program never had. The answer is yes. Not so where
# an operator that is called there looks for its own errors (a Cholesky factorisation reads whether any matrix failed).
CHECKS_VALUES = "/torch/distributions/"
ASKS_FOR_ALL = ("all(", "_all_true(", "torch.normal(")  # the last one asks whether no standard deviation is negative
YES, NO = b"\1", b"\0"
UNKNOWN = "copy to the host"
# An optimizer whose state is on the device asks there how many steps it has made, and divides by what follows from it: never 0.
READS_STEPS = ("/torch/optim/optimizer.py", "_get_value")
NUMBERS = {4: "f", 8: "d"}  # its number is of the default dtype


class Reads:
    """`current_device()` gives the number of the thread's device, `steps()` how many steps of the program are over."""

    def __init__(self, sources, current_device, steps=lambda: 0):
        self._sources = sources
        self._device = current_device
        self._steps = steps
        self._library = self._callback = self._thread = None
        self._timed = []   # (time in ns, device, line) of those whose operators are recorded
        self._counts = {}  # (device, line) -> how many so far
        self._named = {}   # (device, line) -> operator -> how many
        self._assumed = set()  # (device, line) of those that were answered
        self._local = threading.local()

    @property
    def listening(self):
        return self._library is not None

    def listen(self, library, thread):
        """`library`: the emulated device's; None, on a real one: nothing is noted. `thread`: whose line counts where the copying
        thread runs no code of the program's."""
        if library is None:
            return
        self._thread = thread
        self._library = library
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)(self._read)
        library.metaprof_emulator_on_read.argtypes = [ctypes.c_void_p]
        library.metaprof_emulator_on_read.restype = None
        library.metaprof_emulator_on_read(self._callback)

    def stop(self):
        if self.listening:
            self._library.metaprof_emulator_on_read(None)

    def answer(self, content):
        """What the next read of this thread gives; None: what the device has."""
        self._local.answer = content

    def _read(self, host, count):
        device, line = self._device(), self._sources.of_stack(self._thread)[0]
        content = getattr(self._local, "answer", None)
        if content is None and count == len(YES):
            content = self._answer_to_question()
        elif content is None and count in NUMBERS and self._sources.is_called_from(*READS_STEPS):
            content = struct.pack(NUMBERS[count], self._steps() + 1)
        if content is not None:
            self._local.answer = None
            self._assumed.add((device, line))
            ctypes.memmove(host, content, min(count, len(content)))
        self.note(time_ns(), device, line)

    def _answer_to_question(self):
        """What this thread is told where it asks for a truth value that a rule knows; None: there is no rule."""
        asking = self._sources.line_within(CHECKS_VALUES)
        if asking is not None and any(word in asking for word in ASKS_FOR_ALL):
            return YES
        reader = self._sources.reader()
        finished = None if reader is None else generation.answer_to(reader)
        return None if finished is None else YES if finished else NO

    def note(self, moment, device, line):
        self._counts[device, line] = self._counts.get((device, line), 0) + 1
        if len(self._timed) < MOST_KEPT:
            self._timed.append((moment, device, line))

    def name(self, items):
        """`items`: the profiler's, of which none will follow. A read is of the operator that began last before it."""
        began = [item for item in items if isinstance(item, Begin) and item.kind == "operator"]
        times = [item.time for item in began]
        for moment, device, line in self._timed:
            index = bisect.bisect_right(times, moment) - 1
            if index >= 0:
                named = self._named.setdefault((device, line), {})
                named[began[index].name] = named.get(began[index].name, 0) + 1
        self._timed = []

    def rows(self):
        """(device, operator, line, count, how they were answered). Reads of a line whose operators were not recorded are taken to be of its first one."""
        for (device, line), count in sorted(self._counts.items()):
            named = dict(self._named.get((device, line)) or {UNKNOWN: 0})
            named[next(iter(named))] += count - sum(named.values())
            answered = "assumed" if (device, line) in self._assumed else "zero"
            yield from ((device, operator, line, number, answered) for operator, number in named.items())
