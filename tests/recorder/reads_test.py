"""What was read, by operator and line, what it gave and where that came from. Needs no PyTorch."""
import ctypes
import pathlib
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.requests.items import Begin, End  # noqa: E402
from metaprof_recorder.values.device_reads import Reads  # noqa: E402


class Frames:
    """Stands for the program's stack."""

    def of_stack(self, _):
        return "train.py:3", "step"


class ReadsTest(unittest.TestCase):
    def read(self, reads, count):
        host = ctypes.create_string_buffer(count)
        reads._read(ctypes.addressof(host), 4096, count)
        return host.raw

    def test_a_read_is_of_the_operator_that_began_last(self):
        reads = Reads(None, None)
        reads.note(15, 0, "train.py:3")
        reads.note(25, 0, "train.py:4")
        reads.note(27, 0, "train.py:4")
        reads.name([Begin("aten::item", "operator", -1, (), 10), Begin("aten::_local_scalar_dense", "operator", -1, (), 12), End(20), End(20),
                    Begin("metaprof cut 1", "cut", -1, (), 21), End(21), Begin("aten::nonzero", "operator", -1, (), 22), End(30)])
        self.assertEqual(list(reads.rows()), [(0, "aten::_local_scalar_dense", "train.py:3", 1, "unknown"), (0, "aten::nonzero", "train.py:4", 2, "unknown")])

    def test_reads_after_the_steps_that_are_kept_have_the_operator_of_their_line(self):
        reads = Reads(None, None)
        reads.note(15, 1, "train.py:3")
        reads.name([Begin("aten::item", "operator", -1, (), 10)])
        reads.note(100, 1, "train.py:3")
        reads.note(200, 1, "")
        self.assertEqual(list(reads.rows()), [(1, "copy to the host", "", 1, "unknown"), (1, "aten::item", "train.py:3", 2, "unknown")])

    def test_a_line_has_the_weakest_source_of_its_reads(self):
        for sources, expected in ((["computed", "random"], "random"), (["random", "assumed", "computed"], "assumed"), (["computed", "unknown"], "unknown")):
            reads = Reads(None, None)
            for source in sources:
                reads.note(1, 0, "train.py:3", source)
            self.assertEqual([row[-1] for row in reads.rows()], [expected])

    def test_a_number_that_a_call_reads_is_given(self):
        for count, kind in ((4, "i"), (8, "q")):
            reads = Reads(Frames(), lambda: 0)
            with reads.given("unknown", lambda: (7, "computed")):
                self.assertEqual(struct.unpack(kind, self.read(reads, count)), (7,))
            self.assertEqual(list(reads.rows()), [(0, "copy to the host", "train.py:3", 1, "computed")])

    def test_a_call_within_another_that_knows_nothing_leaves_the_answer_to_it(self):
        reads = Reads(Frames(), lambda: 0)
        with reads.given("unknown", lambda: (7, "computed")):
            with reads.given("unknown"):
                self.assertEqual(struct.unpack("q", self.read(reads, 8)), (7,))
            with reads.given("random"):
                self.assertEqual(self.read(reads, 8), bytes(8))

    def test_a_copy_of_no_call_gives_what_stands_there(self):
        reads = Reads(Frames(), lambda: 0)
        reads.content = lambda at, count: (b"abc"[:count], "computed") if at == 4096 else (None, "unknown")
        self.assertEqual(self.read(reads, 3), b"abc")
        with reads.given("computed"):
            self.assertEqual(self.read(reads, 3), bytes(3))

    def test_what_is_not_known_is_zero_and_says_so(self):
        reads = Reads(Frames(), lambda: 0)
        self.assertEqual(self.read(reads, 8), bytes(8))
        self.assertEqual([row[-1] for row in reads.rows()], ["unknown"])


if __name__ == "__main__":
    unittest.main()
