"""At the peak of the programs of owners.py the variables that their source names hold the memory; hardly a byte has no owner.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the test is skipped, and says so. METAPROF_ONLY is a part of the names of those that are run.
"""
import ast
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import METAPROF  # noqa: E402

PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
PROGRAMS = pathlib.Path(__file__).with_name("owners.py")
MOST_WITHOUT = 0.02  # of the peak, in the end: what one call needs


def expected():
    """{name of a program: [(beginning of a variable's text, least share), …]}, as its source says."""
    found = {}
    for function in ast.parse(PROGRAMS.read_text()).body:
        marks = [mark for mark in getattr(function, "decorator_list", []) if isinstance(mark, ast.Call) and mark.func.id == "held"]
        for mark in marks:
            words = [ast.literal_eval(word) for word in mark.args]
            found[function.name] = list(zip(words[::2], words[1::2]))
    return found


def peak_of(name):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "run.json")
        subprocess.run([METAPROF, "run", "--json", report, "--", PYTHON, PROGRAMS, name], stdin=subprocess.DEVNULL, capture_output=True, check=True)
        return json.loads(report.read_text())["ranks"][0]["peak"]


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class OwnersTest(unittest.TestCase):
    def test_every_byte_has_an_owner(self):
        programs = {name: owners for name, owners in expected().items() if os.environ.get("METAPROF_ONLY", "") in name}
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            peaks = dict(zip(programs, pool.map(peak_of, programs)))
        for name, owners in programs.items():
            with self.subTest(name):
                whole = sum(peaks[name]["by_category"].values())
                shares = [(holder["held_by"], holder["bytes"] / whole) for holder in peaks[name]["holders"]]
                for beginning, least in owners:
                    self.assertGreaterEqual(sum(share for text, share in shares if text.startswith(beginning)), least, (beginning, shares))
                self.assertLess(peaks[name]["by_category"]["temporary"] / whole, MOST_WITHOUT, shares)


if __name__ == "__main__":
    unittest.main()
