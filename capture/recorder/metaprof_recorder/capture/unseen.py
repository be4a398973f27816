"""What is not in the captured program, and the share of it: of the bytes that the run requested from the device's allocator."""
import functools


class Unseen:
    def __init__(self, device):
        self._requested = device.requested
        self._bytes = {}  # what -> bytes that were requested meanwhile
        self._begun = self._all = 0
        self._depth = 0

    def begin(self):
        self._begun = self._requested()

    def end(self):
        self._all = self._requested() - self._begun

    def measured(self, what, function):
        """The function; what is requested while it runs counts as not seen."""
        @functools.wraps(function)
        def call(*arguments, **options):
            with self.part(what):
                return function(*arguments, **options)

        return call

    def part(self, what):
        return Part(self, what)

    def warnings(self):
        rows = sorted(self._bytes.items(), key=lambda row: -row[1])
        return [f"{what}: what they call is not in the program; {size} of {self._all} bytes that the run requested "
                f"({100 * size / max(1, self._all):.2f} %)" for what, size in rows]


class Part:
    def __init__(self, unseen, what):
        self._unseen, self._what = unseen, what

    def __enter__(self):
        self._unseen._depth += 1
        self._before = self._unseen._requested()

    def __exit__(self, *_):
        unseen = self._unseen
        unseen._depth -= 1
        if unseen._depth == 0:  # else it is part of the one around it
            unseen._bytes[self._what] = unseen._bytes.get(self._what, 0) + unseen._requested() - self._before
