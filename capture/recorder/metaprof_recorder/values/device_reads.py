"""What the program reads of the device's data: an emulated device says of each copy to the host that it happens.

Each is noted with the line of the program that ran in the copying thread, and with its time: the operators that the profiler saw
then say which of them it was for. What it gives, and where that comes from, says `given` (values/).
"""
import bisect
import contextlib
import ctypes
import struct
import threading
from time import time_ns  # as it is now: the program may replace it

from metaprof_recorder.requests.items import Begin

MOST_KEPT = 1_000_000  # reads of which the operator is looked for
UNSEEN = "copy to the host"
SOURCES = ("unknown", "assumed", "random", "computed")  # a line has the first that one of its reads has
NUMBERS = {4: "i", 8: "q"}


class Reads:
    """`current_device()` gives the number of the thread's device."""

    def __init__(self, sources, current_device):
        self.sources = sources
        self._device = current_device
        self._library = self._callback = self._thread = None
        self._timed = []   # (time in ns, device, line) of those whose operators are recorded
        self._counts = {}  # (device, line) -> how many so far
        self._named = {}   # (device, line) -> operator -> how many
        self._source = {}  # (device, line) -> where the answers come from
        self.last_unknown = ""  # the line that was told last what is not known
        self._local = threading.local()
        self.content = lambda at, count: (None, "unknown")  # what stands there, and its source

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
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(self._read)
        library.metaprof_emulator_on_read.argtypes = [ctypes.c_void_p]
        library.metaprof_emulator_on_read.restype = None
        library.metaprof_emulator_on_read(self._callback)

    def stop(self):
        if self.listening:
            self._library.metaprof_emulator_on_read(None)

    @contextlib.contextmanager
    def given(self, source, number=None):
        """While this lasts, reads of this thread come from there. `number`: a function that gives (the number that is read, its source). Where a call
        within another knows nothing, the outer one counts."""
        before = getattr(self._local, "given", None)
        self._local.given = before if source == "unknown" and number is None and before else (source, number)
        try:
            yield
        finally:
            self._local.given = before

    def _read(self, host, at, count):
        device, line = self._device(), self.sources.of_stack(self._thread)[0]
        given = getattr(self._local, "given", None)
        source, number = given or ("unknown", None)
        if number is not None and count in NUMBERS:
            content, source = number()
            if content is not None:
                ctypes.memmove(host, struct.pack(NUMBERS[count], content), count)
        elif given is None:
            content, source = self.content(at, count)
            if content is not None:
                ctypes.memmove(host, content, count)
        self.note(time_ns(), device, line, source)

    def note(self, moment, device, line, source="unknown"):
        if source == "unknown":
            self.last_unknown = line
        self._counts[device, line] = self._counts.get((device, line), 0) + 1
        self._source[device, line] = min(self._source.get((device, line), source), source, key=SOURCES.index)
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
        """(device, operator, line, count, source). Reads of a line whose operators were not recorded are taken to be of its first one."""
        for (device, line), count in sorted(self._counts.items()):
            named = dict(self._named.get((device, line)) or {UNSEEN: 0})
            named[next(iter(named))] += count - sum(named.values())
            yield from ((device, operator, line, number, self._source[device, line]) for operator, number in named.items())
