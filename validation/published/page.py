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

FINE_TUNINGS = "https://github.com/foundation-model-stack/fms-acceleration/tree/main/scripts/benchmarks/refs"
ADAPTERS = "https://github.com/huggingface/peft/tree/main/method_comparison/image-gen"

HEAD = """# Published figures, repeated

Others have measured memory on real GPUs and published what they ran. This page repeats their programs with `metaprof run`, on the emulated
device, and puts both numbers side by side. No rule of metaprof was fitted to these numbers.

![Published against estimated, one point a row](../images/published.svg)

"""


OUT_OF_MEMORY = "out of memory"  # as repeat.py writes it


def read(name):
    with open(HERE / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_run(row):
    return row["estimated"] != ""


def is_verdict(row):
    """It says that the program ran out of memory, there or here."""
    return not row["published"][0].isdigit() or not row["estimated"][0].isdigit()


def error(row):
    """(estimated − published) / published."""
    return float(row["estimated"]) / float(row["published"]) - 1


def is_equal(row):
    """As printed: the scripts print MiB with all digits of a multiple of 1 KiB, tables some digits less."""
    if is_verdict(row):
        return row["estimated"] == row["published"]
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
        errors = [error(row) for row in run if not is_verdict(row)]
        cells.append((name, len(group), len(run), sum(map(is_equal, run)), percent(statistics.median(map(abs, errors))) if errors else "",
                      percent(max(errors, key=abs)) if errors else ""))
    return table((title, "rows", "repeated", "equal to the digits printed", "median error", "worst"), cells)


def reasons(rows):
    """Rows that are not as printed, and those that were not repeated, by reason."""
    differing = collections.defaultdict(list)
    for row in rows:
        if is_run(row) and not is_equal(row):
            differing[row["kernel"], row["provider"], row["mode"], row["reason"] or "no reason found"].append(error(row))
    missing = collections.Counter((row["kernel"], row["reason"]) for row in rows if not is_run(row))
    text = "### Rows that differ\n\n"
    if differing:
        text += table(("program", "implementation", "measured in", "rows", "error", "reason"),
                      [(kernel, provider, mode, len(errors), f"{percent(min(errors))} to {percent(max(errors))}", reason)
                       for (kernel, provider, mode, reason), errors in sorted(differing.items())])
    else:
        text += "None.\n"
    text += "\n### Rows that were not repeated\n\n"
    text += table(("program", "rows", "what happened"), [(kernel, count, f"`{reason}`") for (kernel, reason), count in sorted(missing.items())]) \
        if missing else "None.\n"
    return text


def liger():
    """The section of Liger-Kernel's benchmarks."""
    rows = read("liger.csv")
    text = f"""## Liger-Kernel's benchmarks

[The table]({SOURCE}) has `torch.cuda.max_memory_allocated` of single modules and losses, forward, backward and whole, on
real cards. Each row is repeated with the benchmark's own script, of the commit that brought the row, by `validation/published/liger.py`. Fused kernels
of Triton run, too: what they allocate is what the program asks for. The driver and the card's clocks play no part.

"""
    text += summary(rows, lambda row: row["gpu"].replace("NVIDIA ", ""), "card") + "\n"
    text += summary(rows, lambda row: row["kernel"], "program") + "\n"
    text += reasons(rows)
    text += "\n### All rows of Liger-Kernel\n\nMiB, as printed by the scripts.\n\n"
    return text + table(("program", "implementation", "measured in", "size", "card", "Liger", "commit", "published", "estimated"),
                        [(row["kernel"], row["provider"], row["mode"], f"{row['x_name']} {float(row['x']):g}", row["gpu"].replace("NVIDIA ", ""),
                          row["liger"], row["commit"], f"{float(row['published']):.3f}",
                          f"{float(row['estimated']):.3f}" if is_run(row) else "") for row in rows])


def digits(number):
    return f"{int(number):,}" if number.isdigit() else number


def difference(row, estimated, published):
    return percent(float(row[estimated]) / float(row[published]) - 1) if row[estimated].isdigit() and row[published].isdigit() else ""


def fine_tunings():
    """The section of fms-acceleration's benchmarks."""
    rows = read("fms_acceleration.csv")
    text = f"""## Fine-tuning runs of language models

[fms-acceleration]({FINE_TUNINGS}) fine-tunes language models on one and two A100 80GB.
It prints the peak of allocated bytes and the bytes that are left after training. It also prints the MiB that `nvidia-smi` showed.

- `validation/published/fms_acceleration.py` is the same training in our own words, with random weights.
- `validation/published/repeat.py` makes the environment of each row and runs it.
- FlashAttention 2 runs by PyTorch's own copy of its kernels.
- PyTorch is 2.6.0 here and was 2.4.1 there. The other packages have the versions that were measured.
- `out of memory` as a published figure: the source has none, most likely for that reason.

Some facts about two models were not at hand. They follow from the bytes after training, of which there are six a parameter. SantaCoder's vocabulary has
49,158 words. PowerLM's number of parameters is that of layers with biases and 49,152 words, and also that of layers without biases and 49,672 words. With
biases its peaks are equal, and without them the first is 2,433,024 bytes too high: this one choice was made by a peak.

The columns `nvidia-smi` compare with the largest reserved memory plus the context of an A100. The rows of PowerLM on one GPU are 7 MiB too low, all of
them. Most other rows on one GPU are at least 1,140 MiB too low, and LoRA's exactly 1,178: something else takes memory on that machine, which the source
does not name. On two GPUs NCCL's memory is missing here, some 700 MiB a card.

"""
    text += summary(rows, lambda row: ", ".join(row["row"].split(", ")[:2]), "run") + "\n"
    text += "### All fine-tuning runs\n\n"
    return text + table(("run", "published peak, bytes", "estimated", "error", "published after training", "estimated", "nvidia-smi, MiB", "estimated",
                         "error", "note"),
                        [(row["row"], digits(row["published"]), digits(row["estimated"]), difference(row, "estimated", "published"),
                          digits(row["after_published"]), digits(row["after_estimated"]), digits(row["smi_published"]), digits(row["smi_estimated"]),
                          difference(row, "smi_estimated", "smi_published"), row["reason"] or row["note"]) for row in rows])


def adapters():
    """The section of PEFT's comparison of methods for images."""
    rows = read("peft_image.csv")
    text = f"""## Adapters of an image model

[PEFT's comparison]({ADAPTERS}) trains FLUX.2-klein-base-4B with many kinds of adapters on an L40S.
It prints the largest reserved memory of its training steps, less what was reserved at the start. `validation/published/peft_image.py` is the same training
in our own words, with random weights. `peft_image.json` has the settings of each kind. Here they run with PyTorch 2.12.0 and peft 0.20.0.

"""
    text += summary(rows, lambda row: "all kinds", "adapters") + "\n"
    return text + table(("adapter", "measured with", "published, bytes", "estimated", "error", "trainable parameters there", "here", "note"),
                        [(row["row"], row["measured_with"].partition(" (")[0], digits(row["published"]), digits(row["estimated"]),
                          difference(row, "estimated", "published"), digits(row["trainable_published"]), digits(row["trainable_estimated"]),
                          row["reason"] or row["note"]) for row in rows])


SETS = ("fms_acceleration.csv", "peft_image.csv")  # in bytes


def all_rows():
    return read("liger.csv") + [row for name in SETS for row in read(name)]


def page():
    rows = [row for row in all_rows() if row["published"] != OUT_OF_MEMORY]
    run = [row for row in rows if is_run(row)]
    return (f"{HEAD}**{sum(map(is_equal, run))} of {len(run)} repeated figures are equal to the last digit that was printed.** "
            f"{len(rows) - len(run)} of {len(rows)} were not repeated.\n\n{fine_tunings()}\n{adapters()}\n{liger()}")


def mebibytes_of(row):
    """What the picture shows of a row: published and estimated, in MiB."""
    bytes_a_unit = 1 if "kernel" in row else 2 ** 20  # Liger-Kernel's tables have MiB
    return float(row["published"]) / bytes_a_unit, float(row["estimated"]) / bytes_a_unit


def picture():
    """Both axes logarithmic, in MiB; a row on the diagonal is equal."""
    rows = [row for row in all_rows() if is_run(row) and not is_verdict(row)]
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
    points = "".join(f'<circle cx="{place(mebibytes_of(row)[0]):.1f}" cy="{size - place(mebibytes_of(row)[1]):.1f}" r="3" '
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
