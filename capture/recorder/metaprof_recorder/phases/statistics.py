"""The allocator's statistics by phase, while the program keeps its own view of them.

The allocator has one peak, the highest since it was last told to forget. Two want to use it: the recorder, which asks for the
peak of every phase, and the program, which may ask for the peak since its own `reset_peak_memory_stats`. So the recorder keeps
for either what the other's resets make the allocator forget:

    peak of the phase    = max(what was put aside for the phase, the allocator's)
    peak of the program  = max(what was put aside for the program, the allocator's)

At either reset the allocator's peaks are put aside for the other. The program's calls go through here because its functions
(`torch.cuda.memory_stats`, `max_memory_allocated`, `reset_peak_memory_stats`, …) all read `torch._C`'s, which are replaced.
"""
BYTES = ("allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes")
COUNTS = ("allocation", "segment", "active", "inactive_split")
TOTALS = ("num_alloc_retries", "num_ooms")


def _put_aside(aside, found, path=()):
    """Takes the peaks of a nested dictionary of statistics into `aside`, a dictionary from paths to numbers."""
    for name, value in found.items():
        if isinstance(value, dict):
            _put_aside(aside, value, (*path, name))
        elif name == "peak":
            aside[path] = max(aside.get(path, value), value)


def _with_peaks(aside, found, path=()):
    """The statistics, with the peaks that were put aside where they are higher."""
    result = {}
    for name, value in found.items():
        if isinstance(value, dict):
            result[name] = _with_peaks(aside, value, (*path, name))
        else:
            result[name] = max(value, aside.get(path, value)) if name == "peak" else value
    return result


class Statistics:
    """`read(device)` gives the allocator's nested dictionary, `reset(device)` makes it forget its peaks."""

    def __init__(self, read, reset):
        self._read = read
        self._reset = reset
        self._of_program = {}  # device -> path -> peak
        self._of_phase = {}

    def program_reads(self, device):
        found = self._read(device)
        return _with_peaks(self._of_program.get(device, {}), found) if isinstance(found, dict) else found

    def program_resets(self, device):
        found = self._read(device)
        if isinstance(found, dict):
            _put_aside(self._of_phase.setdefault(device, {}), found)
        self._of_program[device] = {}
        return self._reset(device)

    def of_phase(self, device):
        """The statistics since the last call, as a row of a report has them; begins anew."""
        found = self._read(device)
        _put_aside(self._of_program.setdefault(device, {}), found)
        row = row_of(_with_peaks(self._of_phase.pop(device, {}), found))
        self._reset(device)
        return row

    def peak_so_far(self, device):
        """Allocated bytes at most since the last call of `of_phase`."""
        return row_of(_with_peaks(self._of_phase.get(device, {}), self._read(device)))["allocated_bytes"]["peak"]

    def now(self, device):
        """As they are, without a new beginning."""
        return row_of(self._read(device))


def row_of(found):
    """Nested statistics of the allocator as {"allocated_bytes": {"current", "peak"}, …}."""
    row = {}
    for name in BYTES + COUNTS:
        numbers = found.get(name, {}).get("all", {})
        row[name] = {which: numbers.get(which, 0) for which in ("current", "peak")}
    for name in TOTALS:
        row[name] = found.get(name, 0)
    return row


def merged(rows):
    """Rows of stretches that follow each other as one: the last's current numbers, the highest peaks."""
    result = {}
    for row in rows:
        for name, value in row.items():
            if not isinstance(value, dict):
                result[name] = value
                continue
            before = result.get(name, {"peak": 0})
            result[name] = {"current": value["current"], "peak": max(before["peak"], value["peak"])}
    return result
