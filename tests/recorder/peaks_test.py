"""Which peaks are looked at, and what was alive then, of an allocator's history that is made up."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.storages import peaks  # noqa: E402
from metaprof_recorder.storages.peaks import Peaks  # noqa: E402

LINE = [{"filename": "/me/train.py", "line": 3, "name": "evaluate"}]


def alloc(address, size, time=0):
    return {"action": "alloc", "addr": address, "size": size, "frames": LINE, "time_us": time}


def free(address, size):
    return {"action": "free_requested", "addr": address, "size": size, "frames": []}


def snapshot(blocks, entries):
    """`blocks`: {address: bytes} that are alive at the end."""
    return {"segments": [{"device": 0, "address": address, "blocks": [{"state": "active_allocated", "requested_size": size, "size": 512, "frames": LINE}]}
                         for address, size in blocks.items()] + [{"device": 1, "address": 9, "blocks": [{"state": "active_allocated", "size": 512}]}],
            "device_traces": [entries, []]}


class Recorder:
    """As much of the recorder as is asked for."""

    def __init__(self):
        self.torch, self.in_backward, self.thread = None, 0, -1
        self.history = types.SimpleNamespace(running=False)
        self.phases = types.SimpleNamespace(phase="forward")
        self.sources = types.SimpleNamespace(of_frames=lambda frames: (f"{frames[0]['filename']}:{frames[0]['line']}" if frames else "", ""),
                                             library_place=lambda frames: "")
        self.tags = types.SimpleNamespace(parameters=list, graphs=None)
        self.rows = []
        self.output = types.SimpleNamespace(write=lambda kind, **row: self.rows.append((kind, row)))


class AliveTest(unittest.TestCase):
    def alive(self, blocks, entries):
        return {address: size for address, (size, _, _) in peaks._alive_at_most(snapshot(blocks, entries), 0).items()}

    def test_what_is_alive_now_if_nothing_was_freed(self):
        self.assertEqual(self.alive({1: 10, 2: 20}, [alloc(2, 20)]), {1: 10, 2: 20})

    def test_what_was_freed_since_the_peak_is_alive_again(self):
        self.assertEqual(self.alive({1: 10}, [alloc(2, 20), free(2, 20)]), {1: 10, 2: 20})

    def test_what_was_made_since_the_peak_is_not(self):
        self.assertEqual(self.alive({1: 10, 3: 5}, [alloc(2, 20), free(2, 20), alloc(3, 5)]), {1: 10, 2: 20})

    def test_an_address_that_is_used_again(self):
        self.assertEqual(self.alive({2: 5}, [alloc(2, 20), free(2, 20), alloc(2, 5)]), {2: 20})

    def test_where_it_was_made(self):
        found = peaks._alive_at_most(snapshot({}, [alloc(2, 20, 7), free(2, 20)]), 0)
        self.assertEqual(found, {2: (20, LINE, 7)})


class PeaksTest(unittest.TestCase):
    def looked(self, found):
        """Which of these peaks are looked at, one after the other."""
        watched = Peaks(Recorder())
        looked = []
        watched._holders = lambda in_backward: looked.append(watched._most[0]) or {}
        for number, peak in enumerate(found):
            watched.measured(number, {0: {"allocated_bytes": {"current": 0, "peak": peak}}})
        return looked

    def test_only_those_that_are_higher_than_all_before(self):
        self.assertEqual(self.looked([5, 9, 7, 9, 10]), [5, 9, 10])

    def test_after_the_first_ones_only_those_that_are_much_higher(self):
        many = list(range(1000, 1000 + peaks.ALL_OF))
        self.assertEqual(self.looked([*many, many[-1] + 1, 1100, 1101]), [*many, 1100])

    def test_where_the_device_gives_more_there_may_be_a_peak(self):
        recorder = Recorder()
        recorder.torch = types.SimpleNamespace(_C=types.SimpleNamespace(_cuda_getDevice=lambda: 0))
        watched = Peaks(recorder)
        taken, allocated = [20, 20, 40, 60], [15, 16, 15, 30]
        watched._emulator = types.SimpleNamespace(metaprof_emulator_count=lambda what, device: taken[0])
        recorder.statistics = types.SimpleNamespace(peak_so_far=lambda device: allocated[0])
        watched._looked[0] = 14
        found = []
        while taken:
            found.append(watched.device_grew())
            watched._looked[0] = max(watched._looked[0], allocated[0])
            del taken[0], allocated[0]
        self.assertEqual(found, [True, False, False, True])  # the second time nothing was given, the third time less is allocated

    def test_a_later_peak_is_written(self):
        recorder = Recorder()
        watched = Peaks(recorder)
        watched._watches = True
        holder = types.SimpleNamespace(category=None, name="", text="seen (train.py:4), a list of 9", dtype="f32", shape=[5])
        watched._holders = lambda in_backward: {(1, 0): holder}
        watched._torch = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace(
            _snapshot=lambda: snapshot({1: 20}, [alloc(1, 20), alloc(2, 8), free(2, 8)]))))
        watched.stays(0, [types.SimpleNamespace(address=3, freed_cut=None)])
        watched.measured(4, {0: {"allocated_bytes": {"current": 512, "peak": 1024}}})
        self.assertEqual(recorder.rows, [("peak", {"device": 0, "allocated_bytes": 1024, "storages": [
            {"bytes": 20, "category": "kept", "name": "", "line": "/me/train.py:3", "held_by": "seen (train.py:4), a list of 9", "dtype": "f32", "shape": [5]},
            {"bytes": 8, "category": "temporary", "line": "/me/train.py:3"}]})])

    def test_what_a_backward_frees_was_held_when_it_began(self):
        recorder = Recorder()
        watched = Peaks(recorder)
        watched._watches = True
        found = [{(2, 0): types.SimpleNamespace(category="activation", name="", text="loss (train.py:4), a Tensor, by its graph", dtype="f32", shape=[2])}, {}]
        watched._holders = lambda in_backward: found.pop(0)
        watched._torch = types.SimpleNamespace(cuda=types.SimpleNamespace(memory=types.SimpleNamespace(
            _snapshot=lambda: snapshot({}, [alloc(2, 8, 5), alloc(3, 4, 1 << 60), free(3, 4), free(2, 8)]))))
        watched._most[0] = 512
        watched.measured(4, {0: {"allocated_bytes": {"current": 512, "peak": 512}}})  # no new peak, but more than was ever alive
        watched.measured(5, {0: {"allocated_bytes": {"current": 0, "peak": 1024}}})
        self.assertEqual([(row["bytes"], row["category"]) for row in recorder.rows[0][1]["storages"]], [(8, "activation"), (4, "temporary")])

    def test_small_ones_are_summed_by_holder(self):
        rows = [{"bytes": 100, "category": "kept", "held_by": "a"}] * peaks.LISTED
        small = [{"bytes": 2, "category": "kept", "held_by": "b"}, {"bytes": 3, "category": "kept", "held_by": "b"}, {"bytes": 1, "category": "temporary"}]
        self.assertEqual(peaks._summed(rows + small)[peaks.LISTED:], [{"bytes": 5, "category": "kept", "held_by": "b", "several": True},
                                                                      {"bytes": 1, "category": "temporary", "held_by": "", "several": True}])


if __name__ == "__main__":
    unittest.main()
