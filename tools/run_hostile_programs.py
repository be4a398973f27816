#!/usr/bin/env python3
"""Runs programs that end in every way that a program can under `metaprof run`, one at a time, and compares with what each says it expects.

    run_hostile_programs.py METAPROF PYTHON [--only WORD] [--out FILE.csv] [--programs FOLDER]

The programs are FOLDER/*.py (tests/data/hostile). The comments at the head of each are what happens, and then

    # options: WORDS        of `metaprof run`
    # command: WORDS        what is run; without it {python} {program}
    # environment: N=V …    of `metaprof run`
    # stdin: TEXT           without it stdin is at its end
    # status: N             the exit status; -9: `metaprof run` itself was killed by signal 9
    # says: TEXT            part of what is said; several lines: each
    # never: TEXT           is not said; several lines: none of them
    # leaves: PATTERN       of files that it leaves in the folder for temporary files, by its own doing
    # writes: FILE          lies in its folder afterwards, and is not empty

{python}, {metaprof}, {program}, {here} (the folder that it lies in) and {folder} (where FOLDER is) are replaced. PYTHON has PyTorch.
Each runs in a copy of its own folder, with its own folder for temporary files. Besides what it expects it must end, leave no process and no
temporary file, and no error may be the recorder's own. Rows that FILE.csv has are left out, so that a check that was stopped goes on.
The exit status is 1 if any was not as stated.
"""
import argparse
import csv
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "tests/data/hostile"
SHARED = ("training.py", "ranks.py")  # what they import
OF_TORCH = ("torchinductor_*",)  # a folder that it makes when it is imported
HANGS = 600  # seconds after which a run is taken to hang; no result depends on it
MARK = "METAPROF_TEST_MARK"  # a variable of all processes of a run
FIELDS = ("name", "as_stated", "status", "seconds", "differs")
# The innermost line of a traceback is the recorder's; lines that mark a place in the one before have no letters.
RECORDERS_OWN = re.compile(r'File "[^"\n]*/metaprof_recorder/[^"\n]*", line \d+.*\n(?:    .*\n)*(?=[A-Za-z_])')


@dataclass
class Program:
    path: pathlib.Path
    what: str = ""
    options: list = field(default_factory=list)
    command: list = field(default_factory=lambda: ["{python}", "{program}"])
    environment: dict = field(default_factory=dict)
    stdin: str = ""
    status: int = 0
    says: list = field(default_factory=list)
    never: list = field(default_factory=list)
    leaves: list = field(default_factory=list)
    writes: list = field(default_factory=list)


@dataclass
class Result:
    status: int  # None: it hangs
    said: str
    running: list  # command lines of processes that are left
    files: list    # temporary files that are left
    missing: list  # files that it should have written
    seconds: float


def read_program(path):
    """A program with what is expected of it. Errors: a head that is not understood."""
    program, lines = Program(path), path.read_text().splitlines()
    head = [line[1:].strip() for line in lines[:next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))]]
    if not head:
        raise ValueError(f"{path}: the head does not say what happens")
    program.what, status = head[0], None
    for line in head[1:]:
        key, _, value = line.partition(": ")
        if key in ("says", "never", "leaves", "writes"):
            getattr(program, key).append(value)
        elif key in ("options", "command"):
            setattr(program, key, shlex.split(value))
        elif key == "environment":
            program.environment.update(word.split("=", 1) for word in shlex.split(value))
        elif key == "stdin":
            program.stdin = value + "\n"
        elif key == "status":
            status = program.status = int(value)
        else:
            raise ValueError(f"{path}: '{line}' is not understood")
    if status is None or not program.says:
        raise ValueError(f"{path}: status and says are needed")
    return program


def programs_of(folder):
    return [read_program(path) for path in sorted(folder.glob("*.py")) if path.name not in SHARED]


def left_running(mark):
    """Command lines of the processes that a run has left."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip() or folder.name)
        except OSError:  # it has ended, or is another user's
            continue
    return found


def end_left_running(mark):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue


def _hear_signals():
    """What a shell's background job ignores, and under nohup, the program would ignore, too."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def run(program, metaprof, python):
    mark, begin = uuid.uuid4().hex, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="metaprof-hostile-") as folder:
        here, temporary = pathlib.Path(folder, "here"), pathlib.Path(folder, "tmp")
        here.mkdir()
        temporary.mkdir()
        for file in (program.path, *(program.path.with_name(name) for name in SHARED)):
            if file.exists():
                shutil.copy(file, here)
        places = {"python": python, "metaprof": metaprof, "program": here / program.path.name, "here": here, "folder": program.path.parent}
        words = [word.format(**places) for word in (*program.options, "--", *program.command)]
        variables = {name: value.format(**places) for name, value in program.environment.items()}
        said = pathlib.Path(folder, "said")
        with open(said, "w") as file:
            child = subprocess.Popen([metaprof, "run", *words], stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, cwd=here,
                                     preexec_fn=_hear_signals, start_new_session=True,
                                     env=os.environ | {"TMPDIR": str(temporary), MARK: mark} | variables)
            try:
                child.communicate(program.stdin.encode(), timeout=HANGS)
                status = child.returncode
            except subprocess.TimeoutExpired:
                status = None
            except BaseException:
                end_left_running(mark)
                raise
        for _ in range(50):  # what is told to end by the death of its parent needs a moment
            running = left_running(mark)
            if not running:
                break
            time.sleep(0.1)
        end_left_running(mark)
        files = [path.relative_to(temporary) for path in sorted(temporary.glob("*"))]
        missing = [name for name in program.writes if not (here / name).is_file() or not (here / name).stat().st_size]
        text = said.read_text(errors="replace")
    return Result(status, text, running, files, missing, time.monotonic() - begin)


def differences(program, result):
    """How a run differs from what is stated, a text each."""
    found = []
    if result.status is None:
        found.append("hangs")
    elif result.status != program.status:
        found.append(f"status {result.status}, not {program.status}")
    found += [f"does not say '{text}'" for text in program.says if text not in result.said]
    found += [f"says '{text}'" for text in program.never if text in result.said]
    found += [f"does not write {name}" for name in result.missing]
    found += [f"leaves {name} running" for name in result.running]
    found += [f"leaves the file {name}" for name in result.files if not any(name.match(pattern) for pattern in (*program.leaves, *OF_TORCH))]
    if own := RECORDERS_OWN.search(result.said):
        found.append(f"an error of the recorder's own: {own.group(0).splitlines()[0].strip()}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metaprof", type=lambda name: str(pathlib.Path(name).resolve()))
    parser.add_argument("python")
    parser.add_argument("--only", default="", help="part of the names of the programs that are run")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, default=PROGRAMS)
    parser.add_argument("--verbose", action="store_true", help="print what was said by those that are not as stated")
    options = parser.parse_args()
    rows = list(csv.DictReader(open(options.out))) if options.out and options.out.exists() else []
    done = {row["name"] for row in rows}
    for program in programs_of(options.programs):
        name = program.path.stem
        if options.only not in name or name in done:
            continue
        result = run(program, options.metaprof, options.python)
        found = differences(program, result)
        rows.append({"name": name, "as_stated": int(not found), "status": result.status, "seconds": round(result.seconds, 1), "differs": "; ".join(found)})
        print(f"{name}: {rows[-1]['differs'] or 'as stated'} ({rows[-1]['seconds']} s)", flush=True)
        if found and options.verbose:
            print("    " + result.said.replace("\n", "\n    "), flush=True)
        if options.out:
            with open(options.out, "a", newline="") as file:
                table = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if file.tell() == 0:
                    table.writeheader()
                table.writerow(rows[-1])
    as_stated = sum(int(row["as_stated"]) for row in rows)
    print(f"{as_stated} of {len(rows)} are as stated")
    sys.exit(as_stated != len(rows))


if __name__ == "__main__":
    main()
