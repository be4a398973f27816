"""What was read, by operator and line."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "recorder"))
from metaprof_recorder.items import Begin, End  # noqa: E402
from metaprof_recorder.reads import Reads  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
