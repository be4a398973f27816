"""How much is kept and computed. The counts are of bytes and of work, not of time: what a program is told does not depend on the machine."""
MEBI = 1 << 20
PER_CALL = 2_000        # nanoseconds of work that each call of the program allows: a tenth of what it takes on an emulated device
AT_FIRST = 300_000_000  # a tenth of the time in which a program with PyTorch starts
OF_ONE_CALL = 10_000    # nanoseconds that a call takes on the CPU, however small it is
FLOPS = 8               # in a nanosecond; an element that is read or written takes one
LARGEST = 16 * MEBI     # bytes of one value that are kept
SMALL = 4096            # bytes of a value that always fits beside large ones: counters, rates and lengths decide more than weights do
LITTLE = 2_000_000      # nanoseconds
SHARE = 10              # per cent of the run's time


class Limits:
    """METAPROF_RECORD_VALUES: bytes that may be kept and the percentage of the run's time that may be spent; 0 of either: no values."""

    def __init__(self, text=""):
        words = text.split()
        self.most_bytes = int(words[0]) if words else 64 * MEBI
        self._share = float(words[1]) / SHARE if len(words) > 1 else 1.0
        self.bytes = 0          # of values and recipes now
        self.deepest = 20_000   # calls, one after the other, that a recipe may have
        self._calls = self._spent = 0

    @property
    def on(self):
        return self.most_bytes > 0 and self._share > 0

    def called(self):
        self._calls += 1

    def work_left(self):
        return int(self._share * (AT_FIRST + PER_CALL * self._calls)) - self._spent

    def spend(self, work):
        """Whether so much may be computed now. What takes little always may: those are the answers that decide the program's way."""
        if work > LITTLE:
            if work > self.work_left():
                return False
            self._spent += work
        return True

    def fits(self, count):
        """A quarter of the room is left to recipes and to small values."""
        return self.bytes + count <= (self.most_bytes if count <= SMALL else self.most_bytes * 3 // 4)

    def allows(self, depth, work):
        """Whether a recipe can ever be computed."""
        return depth <= self.deepest and work <= self.work_left() + AT_FIRST
