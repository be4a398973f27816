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
BYTES = {"MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}

HEAD = """# Published figures, repeated

Others have measured memory on real GPUs and published what they ran. This page repeats their programs with `metaprof run`, on the emulated
device, and puts both numbers side by side. No rule of metaprof was fitted to these numbers.

![Published against estimated, one point a row](../images/published.svg)

"""

REPEAT = """`validation/published/repeat.py SET` makes the environment of each row and runs it. Weights are random. Rows that differ stand below with what is
known of them; [all rows](#all-rows) are at the end.

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
    """To the last digit that was printed. Liger-Kernel's scripts print MiB with all digits of a multiple of 1 KiB, its tables some digits less."""
    if is_verdict(row):
        return row["estimated"] == row["published"]
    tolerance = 0.002 if "kernel" in row else 0.5 * 10 ** -len(row["published"].partition(".")[2])
    return math.isclose(float(row["estimated"]), float(row["published"]), rel_tol=0, abs_tol=tolerance + 1e-9)


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


def differing_kernels(rows):
    """Rows of Liger-Kernel that are not as printed, by reason."""
    differing = collections.defaultdict(list)
    for row in rows:
        if is_run(row) and not is_equal(row):
            differing[row["kernel"], row["provider"], row["mode"], row["reason"] or "not explained"].append(error(row))
    return table(("program", "implementation", "measured in", "rows", "error", "reason"),
                 [(kernel, provider, mode, len(errors), f"{percent(min(errors))} to {percent(max(errors))}", reason)
                  for (kernel, provider, mode, reason), errors in sorted(differing.items())]) if differing else ""


def differing_rows(rows):
    """Rows that are off by half a per cent or more, the worst first."""
    differing = sorted((row for row in rows if is_run(row) and not is_verdict(row) and abs(error(row)) >= 0.005), key=lambda row: -abs(error(row)))
    verdicts = [row for row in rows if is_run(row) and is_verdict(row) and not is_equal(row)]
    return table(("row", "published", "estimated", "error", "reason"),
                 [(row["row"], digits(row["published"]), digits(row["estimated"]), "" if is_verdict(row) else percent(error(row)),
                   row["note"] or "not explained") for row in verdicts + differing]) if verdicts + differing else ""


def missing_rows(rows, name):
    missing = collections.defaultdict(list)
    for row in rows:
        if not is_run(row):
            missing[row["reason"] or "not tried"].append(row[name])
    return table(("not repeated", "rows", "what happened"),
                 [(", ".join(sorted(set(names))) if len(set(names)) < 5 else f"{len(names)} rows", len(names), f"`{reason}`")
                  for reason, names in sorted(missing.items())]) if missing else ""


def digits(number):
    return f"{int(number):,}" if number.isdigit() else number


def difference(row, estimated, published):
    return percent(float(row[estimated]) / float(row[published]) - 1) if row[estimated][:1].isdigit() and row[published][:1].isdigit() else ""


class Set:
    """A table of rows, its words, and how its rows look."""
    title = source = about = words = ""
    group, group_title = None, ""  # of a row; what a group is
    name = "row"  # the column that names a row
    head = ("row", "measured with", "published", "estimated", "error", "note")

    def __init__(self, file):
        self.file, self.rows = file, read(file)

    def cells(self, row):
        return (row["row"], row["measured_with"], digits(row["published"]), digits(row["estimated"]), difference(row, "estimated", "published"),
                row["reason"] or row["note"])

    def differing(self):
        return differing_rows(self.rows)

    def section(self):
        text = f"## {self.title}\n\n{self.words.strip()}\n\n"
        if self.group:
            text += summary(self.rows, self.group, self.group_title) + "\n"
        for part in (self.differing(), missing_rows(self.rows, self.name)):
            text += part + "\n" if part else ""
        return text

    def all_rows(self):
        return f"### {self.title}\n\n{table(self.head, map(self.cells, self.rows))}"


class TorchtitanJobs(Set):
    title = "Pre-training of Llama 3.1 on 8 to 512 GPUs"
    about = "largest reserved memory of a step, GiB"
    words = """
[torchtitan](https://github.com/pytorch/torchtitan/tree/main/benchmarks) and [torchao](https://github.com/pytorch/ao) publish the memory that torchtitan's
trainer logs. `validation/published/torchtitan_jobs.py` runs that trainer, at the commit of the row, on random tokens, and without profiles. PyTorch is the
release after the nightly that was measured. Of a pipeline one rank of each stage is run, and the largest figure counts, as in the source.
"""
    head = ("job", "measured with", "published, GiB", "estimated", "error", "first step, published", "estimated", "note")

    def cells(self, row):
        return (row["row"], row["measured_with"], row["published"], row["estimated"], difference(row, "estimated", "published"),
                row["first_published"], row["first_estimated"], row["reason"] or row["note"])


class FineTunings(Set):
    title = "Fine-tuning of language models on one and two GPUs"
    about = "largest allocated memory, bytes"
    group_title = "run"
    words = """
[fms-acceleration](https://github.com/foundation-model-stack/fms-acceleration/tree/main/scripts/benchmarks/refs) fine-tunes language models on one and two
A100 80GB. It prints the peak of allocated bytes and the bytes that are left after training. It also prints the MiB that `nvidia-smi` showed.

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
    head = ("run", "published peak, bytes", "estimated", "error", "published after training", "estimated", "nvidia-smi, MiB", "estimated", "error", "note")

    @staticmethod
    def group(row):
        return ", ".join(row["row"].split(", ")[:2])

    def cells(self, row):
        return (row["row"], digits(row["published"]), digits(row["estimated"]), difference(row, "estimated", "published"), digits(row["after_published"]),
                digits(row["after_estimated"]), digits(row["smi_published"]), digits(row["smi_estimated"]),
                difference(row, "smi_estimated", "smi_published"), row["reason"] or row["note"])


class Adapters(Set):
    head = ("adapter", "measured with", "published, bytes", "estimated", "error", "trainable parameters there", "here", "note")

    def cells(self, row):
        return (row["row"], row["measured_with"].partition(" (")[0], digits(row["published"]), digits(row["estimated"]),
                difference(row, "estimated", "published"), digits(row["trainable_published"]), digits(row["trainable_estimated"]),
                row["reason"] or row["note"])


class ImageAdapters(Adapters):
    title = "Adapters of an image model"
    about = "largest reserved memory, bytes"
    words = """
[PEFT's comparison](https://github.com/huggingface/peft/tree/main/method_comparison/image-gen) trains FLUX.2-klein-base-4B with many kinds of adapters on an
L40S. It prints the largest reserved memory of its training steps, less what was reserved at the start. `validation/published/peft_image.py` is the same
training in our own words. `peft_image.json` has the settings of each kind. Here they run with PyTorch 2.12.0 and peft 0.20.0.
"""


class LanguageAdapters(Adapters):
    title = "Adapters of a language model"
    about = "largest reserved memory, bytes"
    words = """
[PEFT's comparison](https://github.com/huggingface/peft/tree/main/method_comparison/MetaMathQA) trains Llama-3.2-3B with many kinds of adapters on an L40S: 5,000
steps of four samples of different lengths. It prints the largest reserved memory of all steps, less what was reserved at the start.
`validation/published/peft_llm.py` is the same training in our own words, with peft at the measured commit; `peft_llm.json` has the settings of each kind.

**One fact is not published: the length of the longest sample.** It is taken from one row, `lora-rank32`: of the lengths tried, 703 and 704 tokens are
nearest, 4 MiB below and above. All other rows have 703 and are predicted. The real job reserves up to 8 MiB more or less by chance: `lora-rank64` and `lora-rank64-rslora` do the same
with tensors of the same sizes, and differ by 8,388,608 bytes.
"""


class Generation(Set):
    title = "Generation of 2,048 tokens"
    about = "largest allocated memory, MiB"
    words = """
[Qwen3's speed benchmark](https://github.com/QwenLM/Qwen3/blob/main/docs/source/getting_started/speed_benchmark.md) generates 2,048 tokens after prompts of
1 to 30,720 tokens on an H20, and prints `torch.cuda.max_memory_allocated`. `validation/published/qwen3.py` is the same in our own words.
FlashAttention 2 runs by PyTorch's own copy of its kernels.

**The published figures are not the maximum that the published script asks for.** For Qwen3-0.6B they grow by 112 KiB a token: that is a token's keys and values
alone. With 30,720 tokens, weights, keys, values and one layer's activations need more than was published. They fit what is allocated at the
end (the column "held at the end" of the rows): within 0.08 % for Qwen3-0.6B, and +0.40 % for Qwen3-4B, of which the rest is not explained. So the maximum
differs, and the more, the longer the prompt.
"""
    head = ("run", "measured with", "published, MiB", "maximum estimated", "error", "held at the end", "error", "note")

    def cells(self, row):
        return (row["row"], row["measured_with"], row["published"], row["estimated"], difference(row, "estimated", "published"), row["held_estimated"],
                difference(row, "held_estimated", "published"), row["reason"] or row["note"])


class Kernels(Set):
    title = "Liger-Kernel's benchmarks of single layers and losses"
    about = "largest allocated memory, MiB"
    name = "kernel"
    words = """
[The table](https://github.com/linkedin/Liger-Kernel/blob/main/benchmark/data/all_benchmark_data.csv) has `torch.cuda.max_memory_allocated` of single modules
and losses, forward, backward and whole, on real cards. Each row is repeated with the benchmark's own script, of the commit that brought the row, by
`validation/published/liger.py`. Fused kernels of Triton run, too: what they allocate is what the program asks for. The driver and the card's clocks play no
part.
"""
    head = ("program", "implementation", "measured in", "size", "card", "Liger", "commit", "PyTorch here", "published, MiB", "estimated")

    def differing(self):
        return summary(self.rows, lambda row: row["gpu"].replace("NVIDIA ", ""), "card") + "\n" + \
            summary(self.rows, lambda row: row["kernel"], "program") + "\n" + differing_kernels(self.rows)

    def cells(self, row):
        return (row["kernel"], row["provider"], row["mode"], f"{row['x_name']} {float(row['x']):g}", row["gpu"].replace("NVIDIA ", ""), row["liger"],
                row["commit"], row["torch"], f"{float(row['published']):.3f}", f"{float(row['estimated']):.3f}" if is_run(row) else "")


SETS = {"torchtitan_jobs": TorchtitanJobs, "fms_acceleration": FineTunings, "peft_llm": LanguageAdapters, "peft_image": ImageAdapters,
        "qwen3": Generation, "liger": Kernels}


def all_sets():
    return [kind(f"{name}.csv") for name, kind in SETS.items()]


def anchor(title):
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def overview(sets):
    """A line for each set."""
    cells = []
    for one in sets:
        run = [row for row in one.rows if is_run(row)]
        errors = [error(row) for row in run if not is_verdict(row)]
        cells.append((f"[{one.title}](#{anchor(one.title)})", one.about, len(one.rows), len(run), sum(map(is_equal, run)),
                      percent(statistics.median(map(abs, errors))) if errors else "", percent(max(errors, key=abs)) if errors else ""))
    return table(("set", "figure", "rows", "repeated", "equal to the digits printed", "median error", "worst"), cells)


def page():
    sets = all_sets()
    rows = [row for one in sets for row in one.rows if row["published"] != OUT_OF_MEMORY]
    run = [row for row in rows if is_run(row)]
    return (f"{HEAD}**{sum(map(is_equal, run))} of {len(run)} repeated figures are equal to the last digit that was printed.** "
            f"{len(rows) - len(run)} of {len(rows)} were not repeated.\n\n{overview(sets)}\n{REPEAT}"
            + "\n".join(one.section().rstrip("\n") + "\n" for one in sets) + "\n## All rows\n\n" + "\n".join(one.all_rows() for one in sets))


def mebibytes_of(row):
    """What the picture shows of a row: published and estimated, in MiB."""
    mebibytes = 1 if "kernel" in row else BYTES.get(row.get("unit"), 1) / 2 ** 20  # Liger-Kernel's tables have MiB
    return float(row["published"]) * mebibytes, float(row["estimated"]) * mebibytes


def picture():
    """Both axes logarithmic, in MiB; a row on the diagonal is equal."""
    rows = [row for one in all_sets() for row in one.rows if is_run(row) and not is_verdict(row)]
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
