"""What was read, by operator and line."""
import ctypes
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "recorder"))
from metaprof_recorder.items import Begin, End  # noqa: E402
from metaprof_recorder.reads import Reads  # noqa: E402


class Frames:
    """Stands for the program's stack."""

    def __init__(self, in_checks):
        self.in_checks = in_checks

    def of_stack(self, _):
        return "train.py:3", "step"

    def is_called_from(self, _):
        return self.in_checks


class ReadsTest(unittest.TestCase):
    def test_a_read_is_of_the_operator_that_began_last(self):
        reads = Reads(None, None)
        reads.note(15, 0, "train.py:3")
        reads.note(25, 0, "train.py:4")
        reads.note(27, 0, "train.py:4")
        reads.name([Begin("aten::item", "operator", -1, (), 10), Begin("aten::_local_scalar_dense", "operator", -1, (), 12), End(20), End(20),
                    Begin("metaprof cut 1", "cut", -1, (), 21), End(21), Begin("aten::nonzero", "operator", -1, (), 22), End(30)])
        self.assertEqual(list(reads.rows()), [(0, "aten::_local_scalar_dense", "train.py:3", 1, "zero"), (0, "aten::nonzero", "train.py:4", 2, "zero")])

    def test_reads_after_the_steps_that_are_kept_have_the_operator_of_their_line(self):
        reads = Reads(None, None)
        reads.note(15, 1, "train.py:3")
        reads.name([Begin("aten::item", "operator", -1, (), 10)])
        reads.note(100, 1, "train.py:3")
        reads.note(200, 1, "")
        self.assertEqual(list(reads.rows()), [(1, "copy to the host", "", 1, "zero"), (1, "aten::item", "train.py:3", 2, "zero")])

    def test_a_check_of_values_is_answered_with_yes(self):
        for called, content in ((True, b"\1"), (False, b"\0")):
            host = ctypes.create_string_buffer(1)
            reads = Reads(Frames(called), lambda: 0)
            reads._read(ctypes.addressof(host), 1)
            self.assertEqual(host.raw, content)
            self.assertEqual(list(reads.rows()), [(0, "copy to the host", "train.py:3", 1, "assumed" if called else "zero")])

    def test_a_number_is_no_answer_to_a_check(self):
        host = ctypes.create_string_buffer(8)
        Reads(Frames(True), lambda: 0)._read(ctypes.addressof(host), 8)
        self.assertEqual(host.raw, bytes(8))


if __name__ == "__main__":
    unittest.main()
