"""The programs of tests/data/hostile, which end in every way that a program can: each says at its head what `metaprof run` is expected to
say, and its exit status. METAPROF_ONLY is a part of the names of those that are run.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it. Those that need none are in programs_without_torch_test.py.
"""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import run_hostile_programs as hostile  # noqa: E402

METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")


class ProgramsTest(unittest.TestCase):
    @unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
    def test_programs(self):
        for program in hostile.programs_of(hostile.PROGRAMS):
            if os.environ.get("METAPROF_ONLY", "") not in program.path.stem:
                continue
            with self.subTest(program.path.stem):
                result = hostile.run(program, METAPROF, PYTHON)
                print(f"{program.path.stem}: {result.status}, {result.seconds:.1f} s", file=sys.stderr, flush=True)
                self.assertEqual(hostile.differences(program, result), [], result.said)


if __name__ == "__main__":
    unittest.main()
