"""`--fixes` finds what helps the programs of runs_out.py, which run out of memory.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the test is skipped, and says so. METAPROF_ONLY is a part of the names of those that are run.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import METAPROF  # noqa: E402

PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
PROGRAMS = pathlib.Path(__file__).with_name("runs_out.py")
EXPECTED = {name: re.findall(r'"(\w+)"', words) for words, name in re.findall(r"@helped\((.*)\)\ndef (\w+)", PROGRAMS.read_text())}


def report_of(name, memory, *options):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "run.json")
        found = subprocess.run([METAPROF, "run", "--device", "t4", "--context", "none", "--memory", memory, "--fixes", "--json", report, *options, "--", PYTHON, PROGRAMS, name],
                               stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return found, json.loads(report.read_text())["ranks"][0]


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class RunsOutTest(unittest.TestCase):
    def test_what_helps_is_found(self):
        for name, (memory, *changes) in EXPECTED.items():
            if os.environ.get("METAPROF_ONLY", "") not in name:
                continue
            with self.subTest(name):
                found, rank = report_of(name, memory)
                self.assertEqual(found.returncode, 1, found.stderr)
                self.assertFalse(rank["fits"])
                helps = {fix["name"].partition("=")[0]: fix["tried_in"] for fix in rank["fixes"] if fix["fits"]}
                self.assertLessEqual(set(changes), set(helps), rank["fixes"])
                if name == "own_batch":
                    self.assertEqual(helps["batch"], "captured program")
                if name == "data_loader":
                    self.assertEqual(helps["batch"], "run")
                self.assertIn("on a device with room for it", found.stdout)


if __name__ == "__main__":
    unittest.main()
