"""Blocks that wait for a stream when the reserved memory is at its highest."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.requests.waiting import at_peak  # noqa: E402


def entry(action, address, count=10):
    return {"action": action, "addr": address, "size": count, "frames": [action, address]}


class WaitingTest(unittest.TestCase):
    def test_those_of_the_highest_point_count(self):
        small, large = entry("alloc", 1, 10), entry("alloc", 2, 30)
        events = [entry("segment_alloc", 0, 100), small, large, entry("free_requested", 1, 10), entry("free_requested", 2, 30),
                  entry("segment_alloc", 200, 100), entry("free_completed", 1, 10), entry("segment_free", 200, 100),
                  entry("segment_alloc", 300, 50)]  # which is less than before
        self.assertEqual(at_peak(events), (40, large))

    def test_none_waits_where_each_is_given_back_at_once(self):
        events = [entry("segment_alloc", 0, 100), entry("alloc", 1), entry("free_requested", 1), entry("free_completed", 1),
                  entry("segment_alloc", 200, 100)]
        self.assertEqual(at_peak(events), (0, None))

    def test_a_request_that_failed_has_no_address(self):
        failed = {"action": "oom", "size": 10, "device_free": 0, "frames": []}
        freed = entry("free_requested", 1)
        self.assertEqual(at_peak([freed, failed, entry("segment_alloc", 200, 100)]), (10, freed))

    def test_a_block_from_before_the_history_has_no_line_of_its_own(self):
        freed = entry("free_requested", 1)
        self.assertEqual(at_peak([freed, entry("segment_alloc", 200, 100)]), (10, freed))


if __name__ == "__main__":
    unittest.main()
