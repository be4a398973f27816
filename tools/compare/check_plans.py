#!/usr/bin/env python3
"""Plans as Python files, brought into real models and trained on an emulated device: is the peak the promised one?

    check_plans.py METAPROF PYTHON OUT.csv [--zoo ../shared/tools] [--models tests/data/models] [--only WORD] [--strategies A,B]
                   [--budgets 80%,60%,45%,35%] [--together 8]

METAPROF is the program, PYTHON one that has torch and the libraries of the zoo (zoo.py, record_model.py), MODELS the exports of the zoo. A row
of OUT.csv: model, options, budget, strategy, promised and measured peak of allocated bytes, budget in bytes, "equal"/"differs"/"failed", "within"/"above". Rows that
OUT.csv has already are left out. Plans that hold are checked; of equal plans one. Exit status: 0 at least 90 % of the peaks are equal and none is
above its budget, 1 they are not. Where there is no PYTHON with torch or no zoo, a message says that nothing was checked, and the status is 77.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STRATEGIES = "modules,chain,operators,offload,rotor,square-root,knapsack"
# Sizes at which what the forward keeps is most of a step's memory.
MODELS = [
    ("resnet50", {"optimizer": "sgd"}),
    ("resnet50", {"optimizer": "adamw", "precision": "amp-bf16"}),
    ("gpt2", {"optimizer": "sgd", "batch": 8}),
    ("gpt2", {"optimizer": "adamw", "precision": "amp-bf16", "batch": 8}),
    ("bert_base", {"optimizer": "sgd", "batch": 32}),
    ("llama_3_2_1b", {"optimizer": "sgd", "precision": "bf16", "batch": 4}),
    ("vit_b_16", {"optimizer": "sgd", "batch": 32}),
    ("unet", {"optimizer": "sgd", "batch": 16}),
]


def words_of(options):
    names = {"seq": "sequence", "image": "image-size"}
    return [word for name, value in options.items() for word in (f"--{names.get(name, name)}", str(value))]


def plan(metaprof, model, options, budget, strategy, python):
    command = [metaprof, "plan", model, *words_of(options), "--steps", "2", "--workspaces", "none", "--budget", budget, "--strategy", strategy,
               "--python", python, "--json", "-"]
    answer = subprocess.run(command, capture_output=True, text=True)
    return json.loads(answer.stdout) if answer.stdout else None


def measured(metaprof, python, zoo, lines, work):
    """Per line: the peak of allocated bytes, or None and what was said."""
    report = work / "run.json"
    report.unlink(missing_ok=True)
    run = subprocess.run([metaprof, "run", "--workspaces", "none", "--detail", "1", "--json", report, "--", python, HERE.parent / "record/train_planned.py", zoo,
                          *lines], capture_output=True, text=True)
    (work / "run.log").write_text(run.stdout + run.stderr)
    ranks = {rank["rank"]: rank for rank in json.loads(report.read_text())["ranks"]} if report.exists() else {}
    for number, line in enumerate(lines):
        rank = ranks.get(number if len(lines) > 1 else min(ranks, default=0))
        failed = f"FAILED {line}" in run.stderr or rank is None
        yield None if failed else max(phase["allocated_bytes"]["peak"] for phase in rank["phases"])


def candidates(options, done, work):
    """Per model: its plans that hold, one of equal ones."""
    for name, run in MODELS:
        key = json.dumps(run, separators=(",", ":"))
        if options.only not in f"{name} {key}":
            continue
        cases, seen = [], set()
        for budget in options.budgets.split(","):
            for strategy in options.strategies.split(","):
                if (name, key, budget, strategy) in done:
                    continue
                file = work / (re.sub(r"[^A-Za-z0-9._-]+", "_", f"{name}.{key}.{budget}.{strategy}") + ".py")
                found = plan(options.metaprof, options.models / f"{name}.pt2", run, budget, strategy, file)
                words = " ".join(found["checkpoint"]) if found else ""
                if words and found["holds"] and words not in seen:
                    seen.add(words)
                    cases.append((name, key, budget, strategy, found, file))
        yield cases


def can_check(options):
    has_torch = subprocess.run([options.python, "-c", "import torch, transformers, torchvision"], capture_output=True).returncode == 0
    if has_torch and (options.zoo / "zoo.py").exists():
        return True
    print(f"nothing was checked: {options.python} has no torch, transformers and torchvision, or there is no zoo.py in {options.zoo}")
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--zoo", type=pathlib.Path, default=HERE.parents[2] / "shared/tools")
    parser.add_argument("--models", type=pathlib.Path, default=HERE.parents[1] / "tests/data/models")
    parser.add_argument("--only", default="")
    parser.add_argument("--strategies", default=STRATEGIES)
    parser.add_argument("--budgets", default="80%,60%,45%,35%")
    parser.add_argument("--together", type=int, default=8)
    options = parser.parse_args()
    if not can_check(options):
        return 77
    work = pathlib.Path(f"{options.out}.d")
    work.mkdir(parents=True, exist_ok=True)
    done = {tuple(row[:4]) for row in csv.reader(open(options.out))} if options.out.exists() else set()
    for cases in candidates(options, done, work):
        while cases:
            some, cases = cases[:options.together], cases[options.together:]
            lines = [f"{name} {key} {file}" for name, key, _, _, _, file in some]
            for (name, key, budget, strategy, found, _), peak in zip(some, measured(options.metaprof, options.python, options.zoo, lines, work)):
                with options.out.open("a") as out:
                    csv.writer(out).writerow([name, key, budget, strategy, found["peak"], peak, found["budget"],
                                              "failed" if peak is None else "equal" if peak == found["peak"] else "differs",
                                              "" if peak is None else "within" if peak <= found["budget"] else "above"])
    rows = list(csv.reader(open(options.out))) if options.out.exists() else []
    equal, above = sum(row[7] == "equal" for row in rows), sum(row[8] != "within" for row in rows)
    print(f"{equal} of {len(rows)} peaks equal to the byte; {above} above the budget, or failed")
    return 0 if rows and equal >= 0.9 * len(rows) and not above else 1


if __name__ == "__main__":
    sys.exit(main())
