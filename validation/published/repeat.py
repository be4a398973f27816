#!/usr/bin/env python3
"""Repeats published rows of a set: runs the set's program on the emulated device, and writes what it prints beside what was published.

    repeat.py SET [--rows TEXT]       SET: fms_acceleration, peft_image, peft_llm, qwen3, torchtitan_jobs

SET.csv has a row for each published figure: `row` names it, `arguments` are those of SET.py, `device` and `gpus` what it ran on, `options` more of
`metaprof run`, `versions` the packages that are installed, `sources` repositories that are read at a commit, `published` in `unit` (bytes, if
there is no such column). Columns that this script writes: `estimated`, the peak that the program prints, in the same unit; NAME_estimated,
what else it prints, for each column NAME_published; `smi_estimated`, MiB that nvidia-smi would show; `reason`, why there is no figure.
`note` says what is known of a difference.
A row whose `published` is "out of memory" is repeated if the program does not fit.
If several ranks of a job were run, the peak is that of the rank that needs the most.

Packages are installed once for each list of versions, into a folder of their own (--environments). With uv they share their files.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OUT_OF_MEMORY = "out of memory"
BYTES = {"": 1, "bytes": 1, "MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30}


def environment_of(versions, folder):
    return folder / hashlib.sha256(versions.encode()).hexdigest()[:12]


def python_of(versions, folder):
    """The Python of the environment with these packages ("torch==2.6.0 peft==0.13.2"); it is made if it is not there."""
    environment = environment_of(versions, folder)
    python = environment / "bin/python"
    if not (environment / "complete").exists():
        if shutil.which("uv"):
            subprocess.run(["uv", "venv", "--quiet", "--clear", "--python", sys.executable, environment], check=True)
            subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *versions.split()], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *versions.split()], check=True)
        (environment / "complete").touch()
    return python


def source_of(name, folder):
    """The Python files and settings of a repository of GitHub ("pytorch/torchtitan@9dec370"); they are fetched if they are not there."""
    repository, _, commit = name.partition("@")
    clone, source = folder / "clones" / repository, folder / "sources" / name
    if not source.exists():
        if not clone.exists():
            subprocess.run(["git", "clone", "--quiet", "--bare", f"https://github.com/{repository}", clone], check=True)
        names = subprocess.run(["git", "-C", clone, "ls-tree", "-r", "--name-only", commit], capture_output=True, text=True, check=True).stdout
        names = [name for name in names.splitlines() if name.endswith((".py", ".toml", ".yaml"))]
        packed = subprocess.run(["git", "-C", clone, "archive", commit, *names], capture_output=True, check=True).stdout
        source.mkdir(parents=True)
        subprocess.run(["tar", "x", "-C", source], input=packed, check=True)
    return source / "src" if (source / "src").exists() else source


def command_of(options, row, python):
    """The program. If the set has a configuration of accelerate, it starts one process a card, as the benchmark does."""
    program = [HERE / f"{options.set}.py", *row["arguments"].split()]
    if row["gpus"] == "1" or not (HERE / f"{options.set}.yaml").exists():
        return [python, *program]
    return [python, "-m", "accelerate.commands.launch", "--config_file", HERE / f"{options.set}.yaml", "--num_processes", row["gpus"], *program]


def card_mebibytes(report):
    """What nvidia-smi would show, the mean of the cards: the allocator's segments, the context, and what libraries take besides."""
    cards = [max(phase["reserved_bytes"]["peak"] for phase in rank["phases"]) + sum(filter(None, rank["outside_allocator"].values()))
             for rank in report["ranks"]]
    return round(sum(cards) / len(cards) / 2 ** 20)


def run(options, row, python, report):
    report.unlink(missing_ok=True)
    sources = [source_of(name, pathlib.Path(options.environments)) for name in row.get("sources", "").split()]
    search = os.pathsep.join(map(str, [HERE / "flash_attention", *sources, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [options.metaprof, "run", "--device", row["device"], "--gpus", row["gpus"], *row.get("options", "").split(), "--timeout", options.timeout,
         "--json", report, "--",
         *command_of(options, row, python)], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=search), check=False)


def worst_rank(report):
    """The largest reserved memory of the ranks of a job."""
    return max(phase["reserved_bytes"]["peak"] for rank in report["ranks"] for phase in rank["phases"])


def in_unit(figure, row):
    bytes_a_unit = BYTES[row.get("unit", "")]
    return figure if bytes_a_unit == 1 else round(figure / bytes_a_unit, 3)


def reason_of(error, report):
    """Why a row has no figure: its time was up, or the last error."""
    ended_by = (json.loads(report.read_text(encoding="utf-8"))["ended_by"] if report.exists() else None) or ""
    return f"ended by {ended_by}" if ended_by.startswith("--timeout") else last_error(error)


def last_error(text):
    lines = [line for line in text.splitlines() if "Error" in line or line.startswith("metaprof:")]
    return lines[-1].strip()[:160] if lines else "it printed nothing"


def repeat(options, row):
    report = pathlib.Path(options.folder) / "report.json"
    done = run(options, row, python_of(row["versions"], pathlib.Path(options.environments)), report)
    printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"peak"')]
    row.update({column: "" for column in row if column.endswith("estimated") or column == "reason"})
    if printed:
        run_report = json.loads(report.read_text(encoding="utf-8"))
        figures = {**printed[-1], "smi": card_mebibytes(run_report)}
        if "--rank" in row.get("options", ""):
            figures["peak"] = worst_rank(run_report)
        row["estimated"] = in_unit(figures["peak"], row)
        row.update({f"{name}_estimated": in_unit(figure, row) if name in ("first", "held") else figure
                    for name, figure in figures.items() if f"{name}_estimated" in row})
    elif "OutOfMemoryError" in done.stderr:
        row["estimated"] = OUT_OF_MEMORY
    else:
        row["reason"] = reason_of(done.stderr, report)
    print(row["row"], row["published"], row["estimated"], row["reason"], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set")
    parser.add_argument("--rows", default="", help="only those whose name has this text; the default is all without a figure or a reason")
    parser.add_argument("--metaprof", default="build/release/cli/metaprof")
    parser.add_argument("--environments", default=pathlib.Path.home() / ".cache/metaprof/published")
    parser.add_argument("--folder", default="build/published", help="for reports")
    parser.add_argument("--timeout", default="900", help="seconds of one row")
    options = parser.parse_args()
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    table = HERE / f"{options.set}.csv"
    with open(table, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if options.rows in row["row"] if options.rows else not (row["estimated"] or row["reason"]):
            repeat(options, row)
            with open(table, "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
