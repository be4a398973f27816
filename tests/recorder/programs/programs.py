"""How a program under `metaprof run` is tested: what is said, the exit status, and that nothing is left running.

METAPROF is the program (by default the one of the release build); METAPROF_ONLY a part of the names of those that are run.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
from run_hostile_programs import HANGS, MARK, left_running  # noqa: E402

METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would the programs


class ProgramsTest(unittest.TestCase):
    def check_program(self, name, options, text, status, said, python=sys.executable, files=None):
        """`text` is written to program.py, each of `files` beside it; {here} in options is their folder."""
        with tempfile.TemporaryDirectory() as folder:
            for file, content in {"program.py": textwrap.dedent(text) + "\n", **(files or {})}.items():
                pathlib.Path(folder, file).write_text(content)
            self.check(name, [*(option.format(here=folder) for option in options), "--", python, f"{folder}/program.py"], status, said)

    def check(self, name, words, status, said):
        if os.environ.get("METAPROF_ONLY", "") not in name:
            return
        with self.subTest(name):
            mark, begin = uuid.uuid4().hex, time.monotonic()
            result = subprocess.run([METAPROF, "run", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                                    timeout=HANGS, env=os.environ | {MARK: mark})
            print(f"{name}: {result.returncode}, {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
            self.assertIn(said, result.stdout + result.stderr)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual(left_running(mark), [])
