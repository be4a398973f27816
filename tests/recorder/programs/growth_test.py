"""Memory that grows from step to step, or from call to call, is told of the programs of memory_over_steps.py that grow, and of no other.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the test is skipped, and says so.
"""
import concurrent.futures
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
PROGRAMS = pathlib.Path(__file__).with_name("memory_over_steps.py")
KINDS = {name: kind for kind, name in re.findall(r"@(constant|growing)\ndef (\w+)", PROGRAMS.read_text())}


def grows(name):
    """What the report says of a program's growth."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "run.json")
        subprocess.run([METAPROF, "run", "--json", report, "--", PYTHON, PROGRAMS, name], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return json.loads(report.read_text())["ranks"][0]["growth"]


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class GrowthTest(unittest.TestCase):
    def test_growth_is_told_of_programs_that_grow_alone(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            found = dict(zip(KINDS, pool.map(grows, KINDS)))
        for name, kind in KINDS.items():
            with self.subTest(name):
                self.assertEqual(found[name] is not None, kind == "growing", found[name])


if __name__ == "__main__":
    unittest.main()
