#!/usr/bin/env python3
"""Compares estimates with the recordings of every version of PyTorch, and writes down what came of it.

usage: compare_versions.py SHARED [METAPROF]

SHARED has models/ and recordings/ (models, ops: 2.11; models-VERSION, ops-VERSION; versions/VERSION). A version that
has nothing there is compared with what tools/record/record_version.sh made of it, if that is in tests/data/versions. Writes
validation/results/compared_versions.inc, which `metaprof frameworks` shows, and the table of docs/evidence/accuracy.md between
its marks. METAPROF: the program, build/release/cli/metaprof unless given.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN = ROOT / "tests/data/versions"
INC = ROOT / "validation/results/compared_versions.inc"
PAGE = ROOT / "docs/evidence/accuracy.md"
BEGIN, END = "<!-- versions: begin -->\n", "<!-- versions: end -->\n"
BASE = "2.11.0"  # of recordings whose folders name no version


def run_json(command):
    """What the program writes with --json; differences are no failure of it."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        words = [str(word) for word in [*command, "--json", out]]
        result = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode not in (0, 1):
            sys.exit(f"{' '.join(words[:3])}: {result.stderr.strip()}")
        return json.loads(out.read_text())


def step_rows(metaprof, models, recordings):
    return run_json([metaprof, "check", "--models", models, "--against", *sorted(recordings)])["summary"]


def own_rows(metaprof, folder):
    """The export of RUN.json is that of its program: NAME.pt2 of NAME.amp-bf16.json."""
    rows = []
    for run in sorted(folder.glob("*.json")):
        rows += run_json([metaprof, "check", folder / f"{run.name.split('.')[0]}.pt2", "--against", run])["summary"]
    return rows


def summary_of(rows):
    return {"steps": len(rows), "equal": sum(row["exact_phases"] == row["phases"] for row in rows),
            "reserved_equal": sum(row["peak_reserved_error"] == 0 for row in rows),
            "worst": max((abs(row["peak_allocated_error"]) for row in rows), default=0)}


def compare_cases(metaprof, folder, version):
    logs = sorted(folder.glob("*.h200.log.gz")) if folder.is_dir() else []
    if not logs:
        return {"cases": 0, "cases_equal": 0}
    found = run_json([metaprof, "ops", "--replay", *logs, "--framework", version])
    return {"cases": found["claimed"], "cases_equal": found["claimed"] - len({d["case"] for d in found["differences"]})}


def folders(shared):
    """(version, folder of steps, folder of operator cases), oldest first."""
    recordings = shared / "recordings"
    found = {BASE: (recordings / "models", recordings / "ops")}
    for folder in recordings.glob("models-*"):
        version = folder.name.removeprefix("models-")
        found[version + ".0"] = (folder, recordings / f"ops-{version}")
    for folder in [*(recordings / "versions").iterdir(), *OWN.iterdir()]:
        found.setdefault(folder.name, (folder, recordings / f"ops-{folder.name}"))
    return sorted(((version, *paths) for version, paths in found.items()), key=lambda row: [int(n) for n in row[0].split(".")])


def table(rows):
    lines = ["| PyTorch | steps | equal | peak of reserved bytes equal | largest error of a peak | operator cases known | equal |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    for version, row in rows:
        cases = (f"{row['cases']:,}", f"{row['cases_equal']:,}") if row["cases"] else ("", "")
        worst = f"{100 * row['worst']:.2f} %" if row["worst"] else "0"
        lines.append(f"| {version} | {row['steps']} | {row['equal']} | {row['reserved_equal']} | {worst} | {cases[0]} | {cases[1]} |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n")[1])
    shared = pathlib.Path(sys.argv[1])
    metaprof = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build/release/cli/metaprof")
    for needed in (shared / "models", shared / "recordings/models", metaprof):
        if not needed.exists():
            sys.exit(f"compare_versions.py: there is no {needed}")
    rows = []
    for version, steps, cases in folders(shared):
        own = steps.parent == OWN
        found = own_rows(metaprof, steps) if own else step_rows(metaprof, shared / "models", steps.glob("*.json"))
        row = summary_of(found) | compare_cases(metaprof, cases, version)
        rows.append((version, row))
        print(f"{version}: {row['equal']} of {row['steps']} steps, {row['cases_equal']} of {row['cases']} cases")
    INC.write_text("".join(f'{{"{v}", {r["steps"]}, {r["equal"]}, {r["reserved_equal"]}, {r["worst"]:.6g}, '
                           f'{r["cases"]}, {r["cases_equal"]}}},\n' for v, r in rows))
    page = PAGE.read_text()
    PAGE.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + table(rows) + END, page, flags=re.S))


if __name__ == "__main__":
    main()
