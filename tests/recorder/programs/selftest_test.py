"""`metaprof selftest` as a user runs it, and with a nested emulated run in the place of a GPU.

Needs a Python with PyTorch (METAPROF_TORCH_PYTHON). METAPROF_ONLY: part of the names of programs that are run; without it three are.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))
PART = os.environ.get("METAPROF_ONLY")
ALL = sorted(path.stem for path in (ROOT / "capture/recorder/selftest/programs").glob("*.py"))
NAMES = [name for name in ALL if PART in name] if PART else ["accumulation_clip", "cuda_graph", "lstm"]


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class SelftestTest(unittest.TestCase):
    def selftest(self, *options, around=()):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "selftest.json")
            programs = [word for name in NAMES for word in ("--program", name)]
            command = [*around, METAPROF, "selftest", "--python", PYTHON, "--jobs", "2", "--json", str(file), *programs, *options]
            result = subprocess.run(command, capture_output=True, text=True, timeout=1200)
            self.assertTrue(file.exists(), result.stdout + result.stderr)
            return result, json.loads(file.read_text())

    def test_without_a_gpu(self):
        result, report = self.selftest()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"emulated = estimate in every phase: {len(NAMES)} of {len(NAMES)} programs", result.stdout)
        self.assertFalse(report["gpu"])
        self.assertEqual([program["name"] for program in report["programs"]], NAMES)
        for program in report["programs"]:
            self.assertTrue(program["equal"], program["name"])
            self.assertGreater(len(program["phases"]), 12)

    def test_a_nested_run_stands_in_for_a_gpu(self):
        result, report = self.selftest("--gpu", around=(METAPROF, "run", "--device", "h100", "--"))
        self.assertIn(f"real = emulated in every phase: {len(NAMES)} of {len(NAMES)} programs (in every request: {len(NAMES)})", result.stdout)
        self.assertEqual(report["device"]["title"], "NVIDIA H100 80GB HBM3")
        self.assertTrue(report["driver"])
        self.assertEqual(report["equal"]["real_emulated"], len(NAMES))
        for program in report["programs"]:
            self.assertIsNone(program["real_difference"])
            for phase in program["phases"]:
                self.assertEqual(phase["reserved_bytes"]["peak"]["real"], phase["reserved_bytes"]["peak"]["emulated"])

    def test_no_gpu_is_one_line(self):
        result = subprocess.run([METAPROF, "selftest", "--gpu", "--python", PYTHON], capture_output=True, text=True,
                                env=os.environ | {"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^metaprof: selftest --gpu: PyTorch \S+ of \S+ sees no CUDA device on this machine \(torch.cuda.is_available\(\) is false\)\n$")


if __name__ == "__main__":
    unittest.main()
