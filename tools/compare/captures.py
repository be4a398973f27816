"""What tools that capture programs share: runs of `metaprof run --save`, and what the engine makes of a program beside what its run took."""
import csv
import json
import pathlib
import subprocess

STATISTICS = ("allocated_bytes", "requested_bytes", "reserved_bytes")


def lines_left(models, out, only):
    """Lines of a list of models (library_models.txt) that have the word `only`, and no row in the table `out` yet."""
    done = {row[0] for row in csv.reader(open(out))} if out.exists() else set()
    lines = [line.strip() for line in open(models) if line.strip() and not line.startswith("#")]
    return [line for line in lines if line not in done and only in line]


def run(metaprof, options, command, work, count):
    """Runs a command that makes `count` processes, one after the other. For each its phases (None: it had none) and its program's file."""
    report, program = work / "run.json", work / "all.mp"
    for old in [report, *work.glob("all*.mp")]:
        old.unlink(missing_ok=True)
    done = subprocess.run([metaprof, "run", *options, "--save", program, "--json", report, "--", *command], capture_output=True, text=True)
    (work / "last.log").write_text(done.stdout + done.stderr)
    ranks = {rank["rank"]: rank["phases"] for rank in json.loads(report.read_text())["ranks"]} if report.exists() else {}
    if len(ranks) == 1 and program.exists():  # the only one that used the device, or the only one there was
        number = next(iter(ranks)) if count > 1 else 0
        program.rename(work / f"all.rank{number}.mp")
        ranks = {number: next(iter(ranks.values()))}
    return [(ranks.get(number), work / f"all.rank{number}.mp") for number in range(count)], done.stderr


def statistics(phases):
    """What is compared of phases: which they are, and three statistics at their end and at most."""
    return [{key: phase.get(key) for key in ("phase", "step", "micro", *STATISTICS)} for phase in phases]


def json_of(metaprof, *arguments):
    """The JSON that a command of metaprof prints, or the line that says why there is none."""
    done = subprocess.run([metaprof, *arguments, "--json", "-"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else done.stderr.strip()[:300]


def checked(metaprof, program):
    """The program beside its own run (`metaprof check`): phases equal, phases, errors of the two peaks, the first difference or why there is none."""
    result = json_of(metaprof, "check", program)
    if isinstance(result, str):
        return [0, 0, "", "", result]
    one = result["summary"][0]
    first = one["first_difference"]
    return [one["exact_phases"], one["phases"], one["peak_allocated_error"], one["peak_reserved_error"], json.dumps(first) if first else ""]


def names_done(out):
    """The first column of a table that is there already: who was stopped goes on."""
    return {row[0] for row in csv.reader(open(out))} if pathlib.Path(out).exists() else set()


def append(out, row):
    with open(out, "a") as file:
        csv.writer(file).writerow(row)
