"""The recorder's file: one JSON object a line, written and flushed at once, so that it is whole however the process ends."""
import json
import os
import sys
import time

from metaprof_recorder import environment


class Output:
    """`FOLDER/process-PID.jsonl`. Made with the first row; a forked child that records makes its own."""

    def __init__(self, folder):
        self.folder = folder
        self._file = None
        self._pid = None
        self._start = time.monotonic()

    def path(self, kind, suffix):
        """The name of a further file of this process."""
        return os.path.join(self.folder, f"{kind}-{os.getpid()}{suffix}")

    def write(self, row, **members):
        """One row: its kind, the seconds since the recorder was attached, and what is given."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._file = open(self.path("process", ".jsonl"), "w", encoding="utf-8")
        line = {"row": row, "seconds": round(time.monotonic() - self._start, 6), **members}
        self._file.write(json.dumps(line, default=str) + "\n")
        self._file.flush()

    def header(self):
        self.write("process", pid=os.getpid(), parent=os.getppid(), program=sys.orig_argv if hasattr(sys, "orig_argv") else sys.argv,
                   python=sys.version.split()[0], environment=environment.values_of(environment.JOB + environment.MEMORY))

    def problem(self, kind, text):
        """What keeps the program from being recorded, in one sentence."""
        self.write("problem", kind=kind, text=text)
