"""The recorder's file: one JSON object a line, written at once, so that it is whole however the process ends.

What the program does to its surroundings must not become an error in the program: it may close all files, and the next one that it
opens gets the number; its disk may be full, or the folder gone. What cannot be written is lost, and said once.
"""
import json
import os
import sys
import time
from os import getpid  # as it is now: the program may replace it

from metaprof_recorder.process import environment

_clock, _text_of, _open, _write, _status = time.monotonic, json.dumps, os.open, os.write, os.fstat  # the program may replace them


class Output:
    """`FOLDER/process-PID.jsonl`. Made with the first row; a forked child that records makes its own."""

    def __init__(self, folder):
        self.folder = folder
        self._file = self._identity = self._pid = None
        self._lost = False
        self._start = _clock()

    def path(self, kind, suffix):
        """The name of a further file of this process."""
        return os.path.join(self.folder, f"{kind}-{getpid()}{suffix}")

    def write(self, row, **members):
        """One row: its kind, the seconds since the recorder was attached, and what is given."""
        line = {"row": row, "seconds": round(_clock() - self._start, 6), **members}
        content = (_text_of(line, default=str) + "\n").encode()
        try:
            self._open()
            while content and not self._lost:
                content = content[_write(self._file, content):]
        except OSError as error:
            self._lose(error)

    def _open(self):
        """The file of this process is open afterwards."""
        if self._pid != getpid():
            self._pid, self._lost = getpid(), False
            self._take(os.O_TRUNC)
        elif not self._lost and self._identity_now() != self._identity:
            self._take(0)

    def _take(self, flags):
        self._file = _open(self.path("process", ".jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | flags, 0o644)
        self._identity = self._identity_now()

    def _identity_now(self):
        try:
            status = _status(self._file)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _lose(self, error):
        if not self._lost:
            self._lost = True  # what follows a line that was cut off could not be read
            text = f"metaprof: what is recorded could not be written: {error}\n"
            try:
                _write(2, text.encode())
            except OSError:
                pass

    def header(self):
        self.write("process", pid=getpid(), parent=os.getppid(), program=sys.orig_argv if hasattr(sys, "orig_argv") else sys.argv,
                   python=sys.version.split()[0], environment=environment.values_of(environment.JOB + environment.MEMORY))

    def problem(self, kind, text):
        """What keeps the program from being recorded, in one sentence."""
        self.write("problem", kind=kind, text=text)
