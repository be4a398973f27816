"""What is assumed of data, by the user or because the program goes on. Needs no PyTorch."""
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.ranks.object_collectives import _largest  # noqa: E402
from metaprof_recorder.values.assume import Assumptions, Rule, even_choice  # noqa: E402
from metaprof_recorder.values.checks import passing  # noqa: E402


class Lines:
    """Stands for the program's stack: lines that run, the innermost first."""

    def __init__(self, *lines):
        self.found = lines

    def lines(self):
        return self.found


class AssumptionsTest(unittest.TestCase):
    def test_a_number_is_a_count_and_at_most_all_elements(self):
        self.assertEqual([Rule("train.py:8=30").count(elements) for elements in (100, 20)], [30, 20])

    def test_a_share_is_of_the_elements(self):
        self.assertEqual(Rule("train.py:8=1/4").count(40), 10)

    def test_a_file_is_named_by_the_end_of_its_path(self):
        rule = Rule("src/train.py:8=1")
        self.assertTrue(rule.matches("/me/src/train.py:8"))
        self.assertTrue(rule.matches("src/train.py:8"))
        for other in ("/me/other/train.py:8", "/me/mysrc/train.py:8", "/me/src/train.py:80"):
            self.assertFalse(rule.matches(other), other)

    def test_even_is_a_word_among_the_lines_of_the_environment(self):
        self.assertTrue(Assumptions("even\na b.py:3=7\n", Lines()).even)
        self.assertFalse(Assumptions("", Lines()).even)

    def test_all_is_another_word(self):
        for text, even, all_of_them in (("all\n", False, True), ("even\nall\n", True, True), ("all.py:3=7\n", False, False)):
            found = Assumptions(text, Lines())
            self.assertEqual((found.even, found.all), (even, all_of_them), text)

    def test_the_rule_of_the_innermost_line_counts(self):
        text = "train.py:8=1\nlibrary/mask.py:3=2\n"
        for lines, answer in ((["/lib/library/mask.py:3", "/me/train.py:8"], 2), (["/lib/library/mask.py:4", "/me/train.py:8"], 1)):
            self.assertEqual(Assumptions(text, Lines(*lines)).rule().answer, answer)
        self.assertIsNone(Assumptions(text, Lines("/me/train.py:9")).rule())

    def test_what_is_chosen_evenly_are_the_classes_one_after_the_other(self):
        self.assertEqual(struct.unpack("7q", even_choice(7, 3)), (0, 1, 2, 0, 1, 2, 0))


CHECKS = """
def f(ask, text=""):
    if not ask():
        raise ValueError
    if ask() > 3:
        text = "bad"
        raise ValueError(text)
    assert ask(), "no"
    if (
        not ask() or not ask()
    ):
        raise ValueError
    if ask():
        text = "fine"
    while ask():
        text += "."
    return ask()
"""


class ChecksTest(unittest.TestCase):
    def test_a_program_that_works_does_not_take_the_way_that_only_raises(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(CHECKS)
            file.flush()
            space, asked = {}, []
            exec(compile(CHECKS, file.name, "exec"), space)  # noqa: S102
            given = iter([True, 0, True, True, True, False, True, True, False, None])

            def ask():
                asked.append(passing(sys._getframe(1)))
                return next(given)

            space["f"](ask)
        self.assertEqual(asked, [True, False, True, True, True, None, True, True, True, None])

    def test_of_text_that_is_not_there_nothing_is_known(self):
        space = {}
        exec(compile(CHECKS, "<nothing>", "exec"), space)  # noqa: S102
        asked = []
        space["f"](lambda: asked.append(passing(sys._getframe(1))) or (len(asked) < 7 and len(asked) != 2))
        self.assertEqual(set(asked), {None})


class Size:
    """A tensor with one number."""
    is_cuda = True

    def __init__(self, number):
        self.number = number

    def numel(self):
        return 1


class Values:
    """Numbers that the device knows."""
    def __init__(self):
        self.written = []

    def numbers(self, tensor):
        return None if tensor.number is None else [tensor.number]

    def read(self, tensor):
        return tensor.number

    def write(self, tensor, content):
        self.written.append(content)


class LargestTest(unittest.TestCase):
    def test_of_sizes_that_are_known(self):
        values = Values()
        sizes = [Size(3), Size(9), Size(5)]
        self.assertIs(_largest(values)(sizes), sizes[1])
        self.assertEqual(values.written, [9])

    def test_of_all_else_it_is_the_largest_as_ever(self):
        largest = _largest(Values())
        self.assertEqual((largest(2, 7), largest([4, 1]), largest([], default=6), largest("ab")), (7, 4, 6, "b"))


if __name__ == "__main__":
    unittest.main()
