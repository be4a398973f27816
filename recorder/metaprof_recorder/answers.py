"""What a user assumes of a program's data, as --assume says it (assume.py)."""
from fractions import Fraction


class Rule:
    """FILE:LINE=ANSWER. ANSWER: a number, or a Fraction of the elements."""

    def __init__(self, text):
        self.line, _, answer = text.rpartition("=")
        self.share = "/" in answer
        self.answer = Fraction(answer)

    def matches(self, line):
        return line == self.line or line.endswith("/" + self.line)

    def count(self, elements):
        return min(elements, round(self.answer * elements) if self.share else int(self.answer))


def rules_of(text):
    """(whether choices are even, the rules) of METAPROF_RECORD_ASSUME: a line each."""
    lines = [line for line in text.splitlines() if line]
    return "even" in lines, [Rule(line) for line in lines if line != "even"]


def rule_for(lines, rules):
    """The rule of the first of these lines that has one."""
    return next((rule for line in lines for rule in rules if rule.matches(line)), None)


def mask(count, elements):
    """The bytes of a mask of which the first `count` elements are set."""
    return b"\1" * count + bytes(elements - count)


def even_counts(elements, classes):
    """How many of the elements each class has; the first ones have those that are left over."""
    return [elements // classes + (number < elements % classes) for number in range(classes)]
