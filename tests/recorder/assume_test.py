"""What is assumed of data, and what torch.distributed is told of sizes. Needs no PyTorch."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "recorder"))
from metaprof_recorder.agreement import _largest  # noqa: E402
from metaprof_recorder.answers import Rule, even_counts, mask, rule_for, rules_of  # noqa: E402


class AnswersTest(unittest.TestCase):
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

    def test_lines_of_the_environment(self):
        even, rules = rules_of("even\na b.py:3=7\n")
        self.assertTrue(even)
        self.assertEqual([(rule.line, rule.answer) for rule in rules], [("a b.py:3", 7)])
        self.assertEqual(rules_of(""), (False, []))

    def test_the_rule_of_the_innermost_line_counts(self):
        rules = [Rule("train.py:8=1"), Rule("library/mask.py:3=2")]
        self.assertEqual(rule_for(["/lib/library/mask.py:3", "/me/train.py:8"], rules).answer, 2)
        self.assertEqual(rule_for(["/lib/library/mask.py:4", "/me/train.py:8"], rules).answer, 1)
        self.assertIsNone(rule_for(["/me/train.py:9"], rules))

    def test_a_mask_has_its_first_elements_set(self):
        self.assertEqual([mask(2, 4), mask(0, 2), mask(3, 3)], [b"\1\1\0\0", b"\0\0", b"\1\1\1"])

    def test_what_is_left_over_goes_to_the_first_classes(self):
        self.assertEqual(even_counts(10, 4), [3, 3, 2, 2])
        self.assertEqual(sum(even_counts(1023, 8)), 1023)


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
