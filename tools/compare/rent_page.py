#!/usr/bin/env python3
"""Writes the tables of docs/evidence/rent.md from tests/data/rent/recorded.csv, which check_rent.py makes.

    rent_page.py            writes them
    rent_page.py --check    exit status 1 if they are not what would be written
"""
import collections
import csv
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, ROWS = ROOT / "docs/evidence/rent.md", ROOT / "tests/data/rent/recorded.csv"
BEGIN, END = "<!-- rows: begin -->\n", "<!-- rows: end -->\n"
METHODS = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA", "generate": "generation"}


def error(row):
    """Of the reserved peak in the answer; None: the program ran out of memory, so it has none."""
    return None if row["reserved"] == "out of memory" else int(row["said"]) / int(row["reserved"]) - 1


def is_right(row):
    """The batch ran, and one more did not."""
    return error(row) is not None and row["one_more"] == "out of memory"


def way(row):
    return METHODS[row["method"]] + (", recomputed" if row["recomputed"] else "")


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(map(str, row)) + " |" for row in rows)]) + "\n"


def percent(share):
    return f"{share:+.2%}".replace("%", " %") if share else "0"


def summary(rows):
    ways = collections.defaultdict(list)
    for row in rows:
        ways[way(row)].append(row)
    for name, some in [*ways.items(), ("all", rows)]:
        errors = [abs(error(row)) for row in some if error(row) is not None]
        yield (name, len(some), sum(map(is_right, some)), sum(error(row) is None for row in some), sum(row["one_more"] != "out of memory" for row in some),
               sum(not each for each in errors), percent(statistics.median(errors)), percent(max(errors)))


def worst_first(row):
    return (-1, 0) if error(row) is None else (is_right(row), -abs(error(row)))


def detail(row):
    reserved = row["reserved"] if error(row) is None else f"{int(row['reserved']):,}"
    return (row["model"], row["card"], way(row), row["batch"], f"{int(row['said']):,}", reserved,
            "" if error(row) is None else percent(error(row)), row["one_more"])


def text(rows):
    models = len({row["model"] for row in rows})
    return (f"**In {sum(map(is_right, rows))} of {len(rows)} rows of {models} models the batch ran, and one more ran out of memory.**\n\n"
            + table(["way", "rows", "batch ran, one more did not", "batch ran out of memory", "one more ran", "reserved peak equal", "median error", "worst"],
                    summary(rows))
            + "\n## All rows, the worst first\n\n"
            + table(["model", "card", "way", "batch", "reserved peak said", "of the program", "error", "one more"],
                    map(detail, sorted(rows, key=worst_first))))


def main():
    with open(ROWS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    written = head + BEGIN + text(rows) + END + rest.split(END)[1]
    if sys.argv[1:] == ["--check"]:
        if page != written:
            print(f"{PAGE.relative_to(ROOT)} is not what tools/compare/rent_page.py writes")
            return 1
        return 0
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
