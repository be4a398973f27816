"""What the user says that the program's data are: `--assume`.

    even             what chooses among E classes (topk, argmax and the like: a mixture of experts) takes each equally often. Without it, so does a topk
                     of numbers that are not known, among as many classes as a mixture has experts
    all              a mask that is not known has all of its elements set, and what chooses among unknown numbers (boxes, different values) keeps them all
    FILE:LINE=N      at this line of the program a mask has N elements set, or the number that is read is N
    FILE:LINE=N/M    the same share of the mask's elements

`even` is a value: the classes one after the other. What follows from it (masks, counts, sizes) is computed as from any other.
"""
import array
from fractions import Fraction


MOST_EXPERTS = 1024  # no published mixture has more; vocabularies, among which a beam search chooses, do


class Rule:
    """FILE:LINE=ANSWER. ANSWER: a number, or a Fraction of the elements."""

    def __init__(self, text):
        self.line, _, answer = text.rpartition("=")
        self._share = "/" in answer
        self.answer = Fraction(answer)

    def matches(self, line):
        return line == self.line or line.endswith("/" + self.line)

    def count(self, elements):
        return min(elements, round(self.answer * elements) if self._share else int(self.answer))


class Assumptions:
    """`text`: of METAPROF_RECORD_ASSUME, a line each."""

    def __init__(self, text, sources):
        lines = [line for line in text.splitlines() if line]
        self.even, self.all = "even" in lines, "all" in lines
        self._rules, self._sources = [Rule(line) for line in lines if line not in ("even", "all")], sources

    def rule(self):
        """The rule of the innermost line that runs now and has one."""
        if not self._rules:
            return None
        return next((rule for line in self._sources.lines() for rule in self._rules if rule.matches(line)), None)


def even_choice(elements, classes):
    """The bytes of 64-bit numbers: the classes one after the other, and again."""
    return array.array("q", (list(range(classes)) * (elements // classes + 1))[:elements]).tobytes()
