"""The allocator's history as lines: what `metaprof check` and `metaprof allocator --replay` read."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture" / "recorder"))
from metaprof_recorder.program.sources import Sources  # noqa: E402
from metaprof_recorder.requests.allocator_log import Log  # noqa: E402
from metaprof_recorder.requests.items import Begin, End, Memory  # noqa: E402
from metaprof_recorder.requests.matching import matched  # noqa: E402
from metaprof_recorder.requests.trace import Writer  # noqa: E402

BASE = 0x7F0000000000  # of which only the lower 40 bits are written


class Events:
    """Both recorders' events as a program would cause them."""

    def __init__(self):
        self.items, self.entries, self.time = [], [], 1_000_000

    def range(self, name, kind="operator"):
        self.items.append(Begin(name, kind, -1, (), self.time))

    def end(self):
        self.items.append(End(self.time))

    def cut(self, number):
        self.range(f"metaprof cut {number}", "cut")
        self.end()

    def entry(self, action, address=0, count=0, stream=0):
        self.time += 5000
        if action in ("alloc", "free_requested"):
            self.items.append(Memory(BASE + address, count if action == "alloc" else -count, 0, self.time))
        self.entries.append({"action": action, "addr": BASE + address, "size": count, "stream": stream, "frames": [], "time_us": self.time // 1000})

    def lines(self, rows):
        matches = matched(self.items, self.entries, 0, [(0, self.time)])
        return Log(Writer(self.items, self.entries, matches, rows, [], Sources("/torch"))).lines()


class LogTest(unittest.TestCase):
    def test_requests_returns_segments_and_streams(self):
        events = Events()
        events.entry("segment_alloc", 0, 2097152)
        events.entry("alloc", 0, 1000)
        events.entry("alloc", 0x400, 24, stream=77)
        events.entry("free_requested", 0, 1000)
        events.entry("free_completed", 0, 1000)
        events.entry("free_requested", 0x400, 24, stream=77)
        events.entry("oom", 0, 5)
        events.entry("free_completed", 0x400, 24, stream=77)
        events.entry("segment_free", 0, 2097152)
        events.entry("snapshot")
        events.cut(1)
        self.assertEqual(events.lines([("setup", 0, 1, 1)]), [
            "# phase setup", "S 0 2097152", "+ 0 1000", "+ 400 24 s1", "- 0", "- 400", "! oom 5", "c 400", "R 0 2097152"])

    def test_operators_around_memory_are_written_and_others_are_not(self):
        events = Events()
        events.cut(1)
        events.range("aten::linear")
        events.range("aten::t")  # allocates nothing
        events.end()
        events.range("aten::addmm")
        events.entry("segment_map", 0, 2097152)
        events.entry("alloc", 0, 512)
        events.end()
        events.end()
        events.cut(2)
        events.range("torch::autograd::AddmmBackward0", "node")
        events.entry("free_requested", 0, 512)
        events.entry("free_completed", 0, 512)
        events.end()
        events.cut(3)
        self.assertEqual(events.lines([("setup", 0, 1, 1), ("forward", 0, 2, 2), ("backward", 0, 3, 3)]), [
            "# phase setup", "# phase forward step 0", "> aten::linear", "> aten::addmm", "M 0 2097152", "+ 0 512", "<", "<",
            "# phase backward step 0", "> evaluate AddmmBackward0", "- 0", "<"])

    def test_accumulation_numbers_the_parts(self):
        events = Events()
        for number in range(1, 6):
            events.cut(number)
            events.entry("alloc", 512 * number, 8)
        events.cut(6)
        rows = [("setup", 0, 1, 1), ("forward", 0, 2, 2), ("backward", 0, 3, 3), ("forward", 0, 4, 4), ("backward", 0, 5, 5)]
        phases = [line for line in events.lines(rows) if line.startswith("#")]
        self.assertEqual(phases, ["# phase setup", "# phase forward step 0 micro 0", "# phase backward step 0 micro 0",
                                  "# phase forward step 0 micro 1", "# phase backward step 0 micro 1"])

    def test_what_follows_the_last_phase_is_left_out(self):
        events = Events()
        events.range("aten::mm")
        events.entry("alloc", 0, 512)
        events.cut(1)
        events.entry("alloc", 512, 512)
        events.end()
        self.assertEqual(events.lines([("setup", 0, 1, 1)]), ["# phase setup", "> aten::mm", "+ 0 512", "<"])

    def test_returns_of_blocks_that_are_older_than_the_history_are_left_out(self):
        events = Events()
        events.entry("free_requested", 0, 512)
        events.entry("free_completed", 0, 512)
        events.cut(1)
        self.assertEqual(events.lines([("setup", 0, 1, 1)]), ["# phase setup"])


if __name__ == "__main__":
    unittest.main()
