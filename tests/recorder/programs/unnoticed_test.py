"""Programs with and without the recorder: the same memory before each of their lines, and the same answers of Python about their objects.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it. METAPROF is the program, beside whose build the emulated device lies.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = sorted((ROOT / "tests/data/unnoticed").glob("*.py"))
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
METAPROF = pathlib.Path(os.environ.get("METAPROF", ROOT / "build/release/cli/metaprof"))
DEVICE = "name=t4;title=Tesla T4;sm=75;multiprocessors=40;threads_per_multiprocessor=1024;shared_memory_per_block=65536;memory=15638462464"


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class UnnoticedTest(unittest.TestCase):
    maxDiff = None

    def test_programs(self):
        for program in PROGRAMS:
            if os.environ.get("METAPROF_ONLY", "") not in program.stem:
                continue
            alone = self.alone(program)
            self.assertTrue(alone)
            # Whether the engine repeats what was saved is another question (recorded_steps_test.py): its answer is not to end the run.
            for name, options in (("recorded", []), ("saved", ["--save", "{folder}/step.mp", "--tolerance", "100%"])):
                with self.subTest(program.stem, how=name):
                    self.assertEqual(self.recorded(program, options), alone)

    def alone(self, program):
        library = METAPROF.resolve().parents[1] / "emulator/lib"
        with tempfile.TemporaryDirectory() as folder:
            environment = {"METAPROF_EMULATOR_DEVICE": DEVICE, "METAPROF_EMULATOR_GPUS": "1", "METAPROF_EMULATOR_LOG": folder, "METAPROF_EMULATOR_CUDNN": "",
                           "KINETO_LOG_LEVEL": "99", "LD_PRELOAD": str(library / "libmetaprof-emulator.so"), "LD_LIBRARY_PATH": str(library)}
            return self.lines([], program, os.environ | environment)

    def recorded(self, program, options):
        with tempfile.TemporaryDirectory() as folder:
            words = [METAPROF, "run", "--device", "t4", "--workspaces", "none", "--json", f"{folder}/run.json",
                     *(option.format(folder=folder) for option in options), "--"]
            return self.lines(words, program, os.environ)

    def lines(self, words, program, environment):
        result = subprocess.run([*words, PYTHON, pathlib.Path(__file__).with_name("by_line.py"), program], capture_output=True, text=True, env=environment)
        self.assertIn(result.returncode, (0, 1), result.stderr)  # 1: it asked for more than there is, and went on
        end = "the program has ended\n"
        self.assertIn(end, result.stdout)
        return result.stdout[:result.stdout.index(end)].splitlines()


if __name__ == "__main__":
    unittest.main()
