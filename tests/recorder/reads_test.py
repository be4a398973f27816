"""What was read, by operator and line."""
import ctypes
import pathlib
import struct
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "recorder"))
from metaprof_recorder.generation import answer_to  # noqa: E402
from metaprof_recorder.items import Begin, End  # noqa: E402
from metaprof_recorder.reads import Reads  # noqa: E402


class Frames:
    """Stands for the program's stack: which line of torch's checks of values runs, and whether an optimizer asks for its steps."""

    def __init__(self, in_checks, in_optimizer=False):
        self.in_checks = in_checks
        self.in_optimizer = in_optimizer

    def of_stack(self, _):
        return "train.py:3", "step"

    def is_called_from(self, folder, function=None):
        return self.in_optimizer

    def line_within(self, folder):
        return self.in_checks

    def reader(self):
        return None


class Sized:
    """Stands for the tokens so far and for the criteria of stopping, which allow 8."""
    max_length = 8

    def __init__(self, length):
        self.shape = 2, length


# Functions as those of the library's file, which read in the loop or in a function that it calls.
LOOPS = compile("""
def sample(read, input_ids, stopping_criteria, this_peer_finished=None, cur_len=2):
    return has_unfinished_sequences(read)

def has_unfinished_sequences(read):
    return read()

def beam_search(self, read, input_ids, stopping_criteria, cur_len, this_peer_finished=None):
    return read()

def generate(read, input_ids, stopping_criteria):
    return read()
""", "/lib/site-packages/transformers/generation/utils.py", "exec")


class Beams:
    _beam_search_has_unfinished_sequences = None


class GenerationTest(unittest.TestCase):
    def setUp(self):
        self.loops = {}
        exec(LOOPS, self.loops)  # noqa: S102

    @staticmethod
    def read():
        return answer_to(sys._getframe(1))

    def test_a_text_is_as_long_as_it_may_be(self):
        answers = [self.loops["sample"](self.read, Sized(length), Sized(0)) for length in (3, 7, 8)]
        self.assertEqual(answers, [False, False, True])

    def test_a_beam_search_asks_what_is_left(self):
        answers = [self.loops["beam_search"](Beams(), self.read, Sized(2), Sized(0), length) for length in (3, 7, 8)]
        self.assertEqual(answers, [True, True, False])
        self.assertIs(self.loops["beam_search"](None, self.read, Sized(2), Sized(0), 8), True)  # of a version without the function

    def test_other_questions_have_no_answer(self):
        self.assertIsNone(self.loops["generate"](self.read, Sized(8), Sized(0)))
        self.assertIsNone(self.loops["sample"](lambda: answer_to(sys._getframe()), Sized(8), Sized(0)))
        self.assertIsNone(self.loops["sample"](self.read, Sized(8), object()))


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
        for line, content in (("if not torch._is_all_true(valid):", b"\1"), ("tril = torch.linalg.cholesky(covariance)", b"\0"), (None, b"\0")):
            host = ctypes.create_string_buffer(1)
            reads = Reads(Frames(line), lambda: 0)
            reads._read(ctypes.addressof(host), 1)
            self.assertEqual(host.raw, content)
            self.assertEqual(list(reads.rows()), [(0, "copy to the host", "train.py:3", 1, "assumed" if content == b"\1" else "zero")])

    def test_an_optimizer_that_asks_for_its_steps_is_never_told_0(self):
        for count, kind, number in ((4, "f", 3.0), (8, "d", 3.0)):
            host = ctypes.create_string_buffer(count)
            Reads(Frames(None, in_optimizer=True), lambda: 0, steps=lambda: 2)._read(ctypes.addressof(host), count)
            self.assertEqual(struct.unpack(kind, host.raw), (number,))

    def test_an_answer_of_no_is_an_assumption(self):
        host = ctypes.create_string_buffer(1)
        reads = Reads(Frames(None), lambda: 0)
        with unittest.mock.patch.object(reads, "_answer_to_question", lambda: b"\0"):
            reads._read(ctypes.addressof(host), 1)
        self.assertEqual(list(reads.rows()), [(0, "copy to the host", "train.py:3", 1, "assumed")])

    def test_a_number_is_no_answer_to_a_check(self):
        host = ctypes.create_string_buffer(8)
        Reads(Frames("if not valid.all():"), lambda: 0)._read(ctypes.addressof(host), 8)
        self.assertEqual(host.raw, bytes(8))


if __name__ == "__main__":
    unittest.main()
