#!/usr/bin/env python3
"""What `metaprof rent` answers, beside programs on the emulated device: the batch that it says, and one more.

    check_rent.py METAPROF PYTHON OUT.csv [--device NAME,…] [--largest] NAME…

METAPROF is the program, PYTHON one that has torch, transformers, peft and (for QLoRA) bitsandbytes, NAME a model as `rent` takes it, a built-in one. For
each way to use a model two rows are checked: the smallest of the cards on which it fits, and with --largest the largest one. Rows that OUT.csv has already
are left out, so that a check that was stopped goes on. `said` is the peak of reserved bytes in the answer, `reserved` that of the program, and `one_more`
what became of the program with one sample more.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE.parents[1] / "program" / "builtin" / "configs"
COLUMNS = ["model", "card", "method", "recomputed", "context", "batch", "said", "reserved", "one_more"]
# A card of each size, the smallest first.
CARDS = "rtx4060,rtx3080,rtx3060,t4,rtx4080,l4,rtx4090,rtx5090,a100-40g,l40s,a100,h100,h200"


def answer(options, name):
    framework = subprocess.run([options.python, "-c", "import torch; print('.'.join(torch.__version__.split('.')[:2]))"], capture_output=True, text=True,
                               check=True).stdout.strip()
    rented = subprocess.run([options.metaprof, "rent", name, "--framework", framework, "--device", options.device, "--json", "-"], capture_output=True,
                            text=True)
    if rented.returncode not in (0, 1):
        sys.exit(f"{name}: {rented.stderr.strip()}")
    return json.loads(rented.stdout)


def step_of(report, method, batch):
    return json.dumps({"config": str(CONFIGS / f"{report['model']}.json"), "method": method["method"], "recomputed": method["recomputed"],
                       "precision": report["precision"], "loss": report["loss"], "inputs": report["inputs"], "context": report["context"],
                       "rank": 8, "adapters": "all-linear" if "all-linear" in report["adapters"] else "peft", "batch": batch})


def rows_of(report, largest):
    """(card, row of OUT.csv without what is measured, the two steps)."""
    cards = sorted(report["rows"], key=lambda row: row["available_bytes"])
    for number, method in enumerate(report["methods"]):
        fitting = [card for card in cards if card["methods"][number]["largest_batch"] and not card["methods"][number]["unbounded"]]
        for card in fitting[:1] + (fitting[1:][-1:] if largest else []):
            said = card["methods"][number]
            batch = said["largest_batch"]
            row = [report["model"], card["device"], method["method"], "recomputed" if method["recomputed"] else "", report["context"], batch,
                   said["peak_reserved_bytes"]]
            yield card["device"], row, [step_of(report, method, batch), step_of(report, method, batch + 1)]


def ran(options, card, rows):
    """Runs the steps of all rows on one card, and keeps each row when both of its steps have ended."""
    steps = [step for _, both in rows for step in both]
    command = [options.metaprof, "run", "--device", card, "--detail", "1", "--json", os.devnull, "--", options.python, HERE.parent / "record/train_rented.py", *steps]
    ended = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(f"{options.out}.log", "a"), text=True) as program:
        for line in program.stdout:
            if not line.startswith("STEP "):
                continue
            _, number, end, _, reserved = line.split()
            ended[int(number)] = "out of memory" if end == "out-of-memory" else int(reserved)
            row = rows[int(number) // 2][0]
            if int(number) % 2 and int(number) - 1 in ended:
                more = ended[int(number)]
                with options.out.open("a") as out:
                    csv.writer(out, lineterminator="\n").writerow([*row, ended[int(number) - 1], more if isinstance(more, str) else "ran"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--device", default=CARDS)
    parser.add_argument("--largest", action="store_true")
    options = parser.parse_args()
    if not options.out.exists():
        options.out.write_text(",".join(COLUMNS) + "\n")
    done = {tuple(row[:4]) for row in csv.reader(options.out.open())}
    by_card = collections.defaultdict(list)
    for name in options.names:
        for card, row, steps in rows_of(answer(options, name), options.largest):
            if tuple(row[:4]) not in done:
                by_card[card].append((row, steps))
    for card, rows in by_card.items():
        ran(options, card, rows)


if __name__ == "__main__":
    main()
