#!/usr/bin/env python3
"""Chooses the recordings that are part of the checkout from a folder that has all of them.

  tools/record/select_recordings.py SHARED      SHARED: a folder with recordings/models, recordings/ops and models

Training steps: those that docs/evidence/accuracy.md quotes; for every model and every value of every option one
recording, the ones that add most for their size first; then the smallest of the rest up to STEPS. Their
exports, and the facts of these, go to tests/data/models.

Operator cases: of every operator in every log the two smallest; those that tests name; and for every line of
known_differences.inc the smallest that differ, for which build/release/cli/metaprof is asked.
Of the cases of other versions (recordings/ops-VERSION): of every operator the two smallest that are equal by
the rules of that version and differ by those of 2.11.

The same input gives the same bytes.
"""

import fnmatch
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data/recordings"
EXPORTS = ROOT / "tests/data/models"
KNOWN_DIFFERENCES = ROOT / "validation/cases/known_differences.inc"
STEPS = 64
CASES_PER_OPERATOR = 2
CASES_PER_DIFFERENCE = 2
QUOTED = ROOT / "docs/evidence/accuracy.md"  # a table of models, whose recordings a test compares with the page
LARGEST_STEP = 120_000  # bytes; a larger one would take the place of several others


def compact(path):
    return json.dumps(json.loads(path.read_text()), separators=(",", ":")) + "\n"


def export_name(config):
    name = config["model"]
    for option, letter in (("batch", "b"), ("seq", "s"), ("image", "i")):
        if config.get(option) is not None:
            name += f".{letter}{config[option]}"
    return name + ".pt2"


def features(config):
    """What a recording shows that another may not: its model, and the value of each option."""
    found = {("model", config["model"])}
    for option, value in config.items():
        if option in ("model", "batch", "seq", "image", "steps", "over"):
            continue
        if option in ("checkpoint", "memory_mib", "clip_norm", "clip_value"):
            value = value is not None
        found.add((option, json.dumps(value, sort_keys=True)))
    return found


def read_steps(shared):
    steps = []
    for head in sorted((shared / "recordings/models").glob("*.json")):
        config = json.loads(head.read_text())["config"]
        log, export = head.with_suffix(".log.gz"), shared / "models" / export_name(config)
        if log.exists() and export.exists():
            size = head.stat().st_size + log.stat().st_size
            steps.append((head, log, export, size, features(config)))
    return [step for step in steps if step[3] <= LARGEST_STEP]


def quoted_models():
    return set(re.findall(r"^\| `(\w+)` \|", QUOTED.read_text(), flags=re.M))


def choose_steps(steps):
    quoted = {name.replace("_", "-") + ".json" for name in quoted_models()}
    chosen = [step for step in steps if step[0].name in quoted]
    steps = [step for step in steps if step[0].name not in quoted]
    covered = set().union(*(step[4] for step in chosen))
    exports = {step[2] for step in chosen}

    def cost(step):
        return step[3] + (0 if step[2] in exports else step[2].stat().st_size)

    while steps:
        gain = {step[0]: len(step[4] - covered) / cost(step) for step in steps}
        best = max(steps, key=lambda step: (gain[step[0]], -cost(step), step[0].name))
        if gain[best[0]] == 0:
            if len(chosen) >= STEPS:
                break
            best = min(steps, key=lambda step: (cost(step), step[0].name))
        steps.remove(best)
        chosen.append(best)
        covered |= best[4]
        exports.add(best[2])
    return chosen


def copy_steps(shared):
    folder = DATA / "steps"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    chosen = choose_steps(read_steps(shared))
    for head, log, export, _, _ in chosen:
        (folder / head.name).write_text(compact(head))
        shutil.copyfile(log, folder / log.name)
        if not (EXPORTS / export.name).exists():
            shutil.copyfile(export, EXPORTS / export.name)
            (EXPORTS / export.name).chmod(0o644)
        facts = (shared / "models" / export.name.split(".")[0]).with_suffix(".json")
        if facts.exists() and not (EXPORTS / facts.name).exists():
            (EXPORTS / facts.name).write_text(compact(facts))
    return len(chosen)


def copy_planned(shared):
    """Steps with cuDNN's own plans, as far as their exports are there, and the table of those plans."""
    folder = DATA / "planned"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    heads = sorted((shared / "recordings/planned").glob("*.json"))
    heads = [head for head in heads if (EXPORTS / export_name(json.loads(head.read_text())["config"])).exists()]
    for head in heads:
        (folder / head.name).write_text(compact(head))
    shutil.copyfile(shared / "recordings/planned/workspaces.jsonl", folder / "workspaces.jsonl")
    return len(heads)


def read_cases(log):
    """(name, text) of each case."""
    text = gzip.decompress(log.read_bytes()).decode()
    for block in re.split(r"^(?== )", text, flags=re.M):
        if block.startswith("= "):
            yield block[2 : block.index("\n")], block


def differences(device):
    """Wildcards of the cases on a device that are known to differ."""
    for line in KNOWN_DIFFERENCES.read_text().splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) >= 4 and not line.startswith("#") and fnmatch.fnmatchcase(device, parts[1]):
            yield parts[0]


def named_cases():
    """Cases that text cases of tests name: `recorded shapes/…`."""
    texts = (path.read_text() for path in sorted((ROOT / "tests/cases").glob("*.case")))
    return {name for text in texts for name in re.findall(r"^recorded (\S+)$", text, flags=re.M)}


PROGRAM = ROOT / "build/release/cli/metaprof"


def differing_cases(log, framework="2.11"):
    words = [PROGRAM, "ops", "--replay", log, "--framework", framework, "--json", "-"]
    run = subprocess.run(words, stdout=subprocess.PIPE, check=False)
    return {row["case"] for row in json.loads(run.stdout)["differences"]}


def choose_cases(cases, device, differing):
    order = {name: number for number, (name, _) in enumerate(cases)}
    by_size = sorted(cases, key=lambda case: (len(case[1]), order[case[0]]))
    named, per_operator = named_cases(), {}
    chosen = {name: text for name, text in cases if name in named}
    for name, text in by_size:
        operator = "/".join(name.split("/")[:2])
        per_operator[operator] = per_operator.get(operator, 0) + 1
        if per_operator[operator] <= CASES_PER_OPERATOR:
            chosen[name] = text
    for pattern in differences(device):
        matching = [case for case in by_size if case[0] in differing and fnmatch.fnmatchcase(case[0], pattern)]
        chosen.update(matching[:CASES_PER_DIFFERENCE])
    return [chosen[name] for name in sorted(chosen, key=order.get)]


def copy_cases(shared):
    folder = DATA / "cases"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    count = 0
    for log in sorted((shared / "recordings/ops").glob("*.log.gz")):
        chosen = choose_cases(list(read_cases(log)), log.name.split(".")[1], differing_cases(log))
        count += len(chosen)
        (folder / log.name).write_bytes(gzip.compress("".join(chosen).encode(), mtime=0))
    return count


def copy_cases_of_versions(shared):
    count = 0
    for source in sorted((shared / "recordings").glob("ops-*")):
        version = source.name.removeprefix("ops-")
        folder = DATA / f"cases-{version}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for log in sorted(source.glob("*.log.gz")):
            changed = differing_cases(log) - differing_cases(log, version)
            cases = sorted((case for case in read_cases(log) if case[0] in changed), key=lambda case: len(case[1]))
            per_operator = {}
            for name, text in cases:
                per_operator.setdefault("/".join(name.split("/")[:2]), []).append(text)
            chosen = [text for texts in per_operator.values() for text in texts[:CASES_PER_OPERATOR]]
            count += len(chosen)
            (folder / log.name).write_bytes(gzip.compress("".join(chosen).encode(), mtime=0))
    return count


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    shared = pathlib.Path(sys.argv[1])
    print(f"{copy_steps(shared)} steps, {copy_planned(shared)} with plans, {copy_cases(shared)} cases, "
          f"{copy_cases_of_versions(shared)} of other versions")


if __name__ == "__main__":
    main()
