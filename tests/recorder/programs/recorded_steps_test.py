"""Training scripts under `metaprof run` against recordings of the same steps: every phase, allocated, requested and reserved. The
program that each run saves is run by the engine, and takes what the run took.

Needs a Python with PyTorch, torchvision and transformers (METAPROF_TORCH_PYTHON) and the recordings (METAPROF_SHARED): those of its version are
compared. METAPROF_RECORDINGS is a pattern of names; without it a few small ones are. METAPROF_SAVED=no leaves the saved programs out.
"""
import fnmatch
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
SHARED = os.environ.get("METAPROF_SHARED")
METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))
FEW = ["mlp", "resnet18.acc2", "gpt2.b1.s64.amp-bf16", "tiny-llama.adagrad.foreach.steps2", "lora-mlp.ckpt-n",
       "audio-conv1d", "checkpoint-mlp", "tied-lm", "gpt2.cublas-workspace-config-168"]
TOGETHER = 16  # processes of one run
SAVED = os.environ.get("METAPROF_SAVED") != "no"
FIELDS = ("allocated_bytes", "requested_bytes", "reserved_bytes")


def recordings_folder():
    """The recordings of this Python's PyTorch."""
    command = [PYTHON, "-c", "import importlib.metadata; print(importlib.metadata.version('torch').split('+')[0])"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return pathlib.Path(SHARED) / "recordings" / {"2.11.0": "models", "2.15.0": "models-2.15"}.get(version, f"versions/{version}")


def chosen():
    pattern = os.environ.get("METAPROF_RECORDINGS")
    files = sorted(recordings_folder().glob("*.json"))
    return [file for file in files if (fnmatch.fnmatch(file.stem, pattern) if pattern else file.stem in FEW)]


def groups(recordings):
    """Those that can be run by one parent: the same device, allocator and environment."""
    found = {}
    for recording in recordings:
        config = recording["config"]
        key = config["device"], config["memory_mib"], config["alloc_conf"], tuple(sorted(config["env"].items()))
        found.setdefault(key, []).append(recording)
    return [(key, alike[first:first + TOGETHER]) for key, alike in found.items() for first in range(0, len(alike), TOGETHER)]


@unittest.skipUnless(PYTHON and SHARED, "METAPROF_TORCH_PYTHON names no Python with PyTorch, or METAPROF_SHARED no recordings")
class RecordedStepsTest(unittest.TestCase):
    maxDiff = None

    def test_every_phase(self):
        recordings = [json.loads(file.read_text()) for file in chosen()]
        if not recordings:
            self.skipTest(f"{recordings_folder()} has no recordings of these names")
        for (device, memory, alloc_conf, env), recordings in groups(recordings):
            options = ["--device", device, "--workspaces", "none"]  # as it was recorded
            options += ["--memory", f"{memory}MiB", "--context", "none"] if memory else []
            options += ["--env", f"PYTORCH_ALLOC_CONF={alloc_conf}"] if alloc_conf else []  # which versions before 2.10 do not read
            for name, value in env:
                options += ["--env", f"{name}={value}"]
            with self.subTest([recording["id"] for recording in recordings]):
                for recording, rank in zip(recordings, self.run_all(options, recordings)):
                    with self.subTest(recording["id"]):
                        self.compare(recording, rank)

    def run_all(self, options, recordings):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = []
            for number, recording in enumerate(recordings):
                files.append(folder / f"{number}.json")
                files[-1].write_text(json.dumps(recording["config"]))
            command = [METAPROF, "run", *options, "--json", folder / "run.json", *(["--save", folder / "step.mp"] if SAVED else []), "--", PYTHON, pathlib.Path(__file__).with_name("plain_training.py"), *files]
            result = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            ranks = json.loads((folder / "run.json").read_text())["ranks"]
            for recording, program in zip(recordings, self.saved(folder, len(recordings)) if SAVED else []):
                with self.subTest(recording["id"], saved=program.name):
                    self.check(program)
        self.assertEqual([rank["rank"] for rank in ranks], list(range(len(recordings))))
        return ranks

    @staticmethod
    def saved(folder, count):
        return [folder / "step.mp"] if count == 1 else [folder / f"step.rank{number}.mp" for number in range(count)]

    def check(self, program):
        result = subprocess.run([METAPROF, "check", program, "--json", "-"], capture_output=True, text=True)
        self.assertTrue(result.stdout, result.stderr)
        summary = json.loads(result.stdout)["summary"][0]
        self.assertIsNone(summary["first_difference"])
        self.assertEqual(summary["exact_phases"], summary["phases"])

    def compare(self, recording, rank):
        def rows(phases):
            return [{key: row.get(key) for key in ("phase", "step", "micro", *FIELDS)} for row in phases]
        expected = recording["phases"]
        if "out_of_memory" in expected[-1]:  # what is alive when the error has been handled is the program's affair
            for phases in (expected, rank["phases"]):
                for field in FIELDS:
                    phases[-1][field].pop("current")
        self.assertEqual(rows(rank["phases"]), rows(expected))


if __name__ == "__main__":
    unittest.main()
