#!/usr/bin/env python3
"""Writes docs/evidence/published.md and its picture from the rows in this folder.

    page.py            writes both
    page.py --check    exit status 1 if either is not what would be written
"""
import collections
import csv
import math
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE, PICTURE = ROOT / "docs/evidence/published.md", ROOT / "docs/images/published.svg"
SOURCE = "https://github.com/linkedin/Liger-Kernel/blob/main/benchmark/data/all_benchmark_data.csv"

HEAD = """# Published figures, repeated

Others have measured memory on real GPUs and published what they ran. This page repeats their programs with `metaprof run`, on the emulated
device, and puts both numbers side by side. Nothing here was fitted to these numbers.

![Published against estimated, one point a row](../images/published.svg)

"""


def read(name):
    with open(HERE / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_run(row):
    return row["estimated"] != ""


def error(row):
    """(estimated − published) / published."""
    return float(row["estimated"]) / float(row["published"]) - 1


def is_equal(row):
    """As printed: the scripts print MiB with all digits of a multiple of 1 KiB, tables some digits less."""
    return math.isclose(float(row["estimated"]), float(row["published"]), rel_tol=0, abs_tol=0.002)


def percent(share):
    return "0" if share == 0 else f"{100 * share:+.2f} %"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]) + "\n"


def summary(rows, key, title):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    cells = []
    for name, group in sorted(groups.items()):
        run = [row for row in group if is_run(row)]
        worst = max((error(row) for row in run), key=abs, default=None)
        cells.append((name, len(group), len(run), sum(map(is_equal, run)),
                      percent(statistics.median(abs(error(row)) for row in run)) if run else "", "" if worst is None else percent(worst)))
    return table((title, "rows", "repeated", "equal to the digits printed", "median error", "worst"), cells)


def reasons(rows):
    """Rows that are not as printed, and those that were not repeated, by reason."""
    differing = collections.defaultdict(list)
    for row in rows:
        if is_run(row) and not is_equal(row):
            differing[row["kernel"], row["provider"], row["mode"], row["reason"] or "no reason found"].append(error(row))
    missing = collections.Counter((row["kernel"], row["reason"]) for row in rows if not is_run(row))
    text = "## Rows that differ\n\n"
    if differing:
        text += table(("program", "implementation", "measured in", "rows", "error", "reason"),
                      [(kernel, provider, mode, len(errors), f"{percent(min(errors))} to {percent(max(errors))}", reason)
                       for (kernel, provider, mode, reason), errors in sorted(differing.items())])
    else:
        text += "None.\n"
    text += "\n## Rows that were not repeated\n\n"
    text += table(("program", "rows", "what happened"), [(kernel, count, f"`{reason}`") for (kernel, reason), count in sorted(missing.items())]) \
        if missing else "None.\n"
    return text


def page():
    rows = read("liger.csv")
    run = [row for row in rows if is_run(row)]
    text = HEAD
    text += (f"**{sum(map(is_equal, run))} of {len(run)} repeated rows are equal to the last digit that was printed.** "
             f"{len(rows) - len(run)} of {len(rows)} rows were not repeated.\n\n")
    text += f"""## Liger-Kernel's benchmarks

[The table]({SOURCE}) has `torch.cuda.max_memory_allocated` of single modules and losses, forward, backward and whole, on
real cards. Each row is repeated with the benchmark's own script, of the commit that brought the row, by `validation/published/liger.py`. Fused kernels
of Triton run, too: what they allocate is what the program asks for. The driver and the card's clocks play no part.

"""
    text += summary(rows, lambda row: row["gpu"].replace("NVIDIA ", ""), "card") + "\n"
    text += summary(rows, lambda row: row["kernel"], "program") + "\n"
    text += reasons(rows)
    text += "\n## All rows\n\nMiB, as printed by the scripts.\n\n"
    text += table(("program", "implementation", "measured in", "size", "card", "Liger", "commit", "published", "estimated"),
                  [(row["kernel"], row["provider"], row["mode"], f"{row['x_name']} {float(row['x']):g}", row["gpu"].replace("NVIDIA ", ""),
                    row["liger"], row["commit"], f"{float(row['published']):.3f}",
                    f"{float(row['estimated']):.3f}" if is_run(row) else "") for row in rows])
    return text


def picture():
    """Both axes logarithmic, in MiB; a row on the diagonal is equal."""
    rows = [row for row in read("liger.csv") if is_run(row)]
    low, high, size, margin = 0, 17, 480, 46  # powers of 2

    def place(value):
        return margin + (math.log2(max(float(value), 1)) - low) / (high - low) * (size - 2 * margin)

    marks = []
    for power in range(low, high + 1, 4):
        at = place(2 ** power)
        label = f"{2 ** power} MiB" if power < 10 else f"{2 ** (power - 10)} GiB"
        marks.append(f'<line x1="{at:.1f}" y1="{size - margin}" x2="{at:.1f}" y2="{margin}" stroke="#ddd"/>'
                     f'<line x1="{margin}" y1="{size - at:.1f}" x2="{size - margin}" y2="{size - at:.1f}" stroke="#ddd"/>'
                     f'<text x="{at:.1f}" y="{size - margin + 16}" text-anchor="middle">{label}</text>'
                     f'<text x="{margin - 4}" y="{size - at + 4:.1f}" text-anchor="end">{label}</text>')
    points = "".join(f'<circle cx="{place(row["published"]):.1f}" cy="{size - place(row["estimated"]):.1f}" r="3" '
                     f'fill="{"#2a6f4f" if is_equal(row) else "#c0392b"}" fill-opacity="0.5"/>' for row in rows)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}" font-family="sans-serif" font-size="11">'
            f'<rect width="{size}" height="{size}" fill="white"/>{"".join(marks)}'
            f'<line x1="{margin}" y1="{size - margin}" x2="{size - margin}" y2="{margin}" stroke="#888"/>{points}'
            f'<text x="{size / 2}" y="{size - 8}" text-anchor="middle">measured on a real GPU and published</text>'
            f'<text x="12" y="{size / 2}" text-anchor="middle" transform="rotate(-90 12 {size / 2})">metaprof run</text>'
            f'<text x="{size / 2}" y="22" text-anchor="middle">green: equal to the digits printed; red: not</text></svg>\n')


def main():
    wrong = 0
    for path, text in ((PAGE, page()), (PICTURE, picture())):
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path.relative_to(ROOT)} is not what validation/published/page.py writes")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
