"""The program sees the peaks that it would see without the recorder, and the recorder those of each phase."""
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.phases.statistics import BYTES, Statistics, merged  # noqa: E402


class Allocator:
    """One number in the place of all, with the one peak that an allocator has."""

    def __init__(self):
        self.current = self.peak = 0

    def change(self, count):
        self.current += count
        self.peak = max(self.peak, self.current)

    def read(self, device):
        return {name: {"all": {"current": self.current, "peak": self.peak}} for name in BYTES} | {"num_ooms": 0}

    def reset(self, device):
        self.peak = self.current


class StatisticsTest(unittest.TestCase):
    def test_a_phase_does_not_hide_the_programs_peak(self):
        allocator = Allocator()
        statistics = Statistics(allocator.read, allocator.reset)
        allocator.change(100)
        allocator.change(-60)
        self.assertEqual(statistics.of_phase(0)["allocated_bytes"], {"current": 40, "peak": 100})
        self.assertEqual(statistics.of_phase(0)["allocated_bytes"], {"current": 40, "peak": 40})
        self.assertEqual(statistics.program_reads(0)["allocated_bytes"]["all"], {"current": 40, "peak": 100})

    def test_the_programs_reset_does_not_hide_the_phases_peak(self):
        allocator = Allocator()
        statistics = Statistics(allocator.read, allocator.reset)
        allocator.change(100)
        allocator.change(-60)
        statistics.program_resets(0)
        self.assertEqual(statistics.program_reads(0)["allocated_bytes"]["all"]["peak"], 40)
        self.assertEqual(statistics.of_phase(0)["allocated_bytes"]["peak"], 100)

    def test_any_order_of_changes_and_resets(self):
        for seed in range(200):
            random.seed(seed)
            allocator, alone = Allocator(), Allocator()  # `alone`: without a recorder
            statistics = Statistics(allocator.read, allocator.reset)
            most = 0
            for _ in range(100):
                what = random.choice(("change", "change", "change", "phase", "reset", "read"))
                if what == "change":
                    count = random.randint(-allocator.current, 100)
                    allocator.change(count)
                    alone.change(count)
                    most = max(most, allocator.current)
                elif what == "phase":
                    self.assertEqual(statistics.of_phase(0)["allocated_bytes"], {"current": allocator.current, "peak": most})
                    most = allocator.current
                elif what == "reset":
                    statistics.program_resets(0)
                    alone.reset(0)
                else:
                    self.assertEqual(statistics.program_reads(0), alone.read(0))

    def test_stretches_that_follow_each_other(self):
        rows = [{"allocated_bytes": {"current": 5, "peak": 9}, "num_ooms": 0}, {"allocated_bytes": {"current": 7, "peak": 8}, "num_ooms": 1}]
        self.assertEqual(merged(rows), {"allocated_bytes": {"current": 7, "peak": 9}, "num_ooms": 1})


if __name__ == "__main__":
    unittest.main()
