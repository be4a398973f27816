#!/usr/bin/env python3
"""tools/record_pytorch.py writes what `metaprof check` and `metaprof allocator` read, and needs no PyTorch to load."""

import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "record_pytorch.py"
sys.path.insert(0, str(SCRIPT.parent))
import record_pytorch  # noqa: E402


class Lines(unittest.TestCase):
    def test_requests_and_releases(self):
        history = [
            {"action": "segment_alloc", "addr": 0x7F0000000000, "size": 2097152, "stream": 0},
            {"action": "alloc", "addr": 0x7F0000000000, "size": 1000, "stream": 0},
            {"action": "alloc", "addr": 0x7F0000000400, "size": 24, "stream": 77},
            {"action": "free_requested", "addr": 0x7F0000000000, "size": 1000, "stream": 0},
            {"action": "free_completed", "addr": 0x7F0000000000, "size": 1000, "stream": 0},
            {"action": "free_requested", "addr": 0x7F0000000400, "size": 24, "stream": 77},
            {"action": "oom", "size": 5, "device_free": 3},
            {"action": "free_completed", "addr": 0x7F0000000400, "size": 24, "stream": 77},
            {"action": "segment_free", "addr": 0x7F0000000000, "size": 2097152, "stream": 0},
            {"action": "snapshot", "size": 0},
        ]
        self.assertEqual(
            record_pytorch.lines_of(history),
            [
                "S 0 2097152",
                "+ 0 1000",
                "+ 400 24 s1",
                "- 0",
                "- 400",
                "! oom 5",
                "c 400",
                "R 0 2097152",
            ],
        )


class Arguments(unittest.TestCase):
    def test_wants_a_model_and_a_file(self):
        outcome = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, 2)
        self.assertIn("FILE:FUNCTION", outcome.stderr)

    def test_says_that_there_is_no_framework_or_device(self):
        outcome = subprocess.run(
            [sys.executable, str(SCRIPT), "a:b", "--out", "x.json", "--device", "h100"],
            capture_output=True, text=True, env={"PATH": "", "CUDA_VISIBLE_DEVICES": ""},
        )
        self.assertEqual(outcome.returncode, 1)
        self.assertRegex(outcome.stderr, "PyTorch is not installed|no CUDA device")


if __name__ == "__main__":
    unittest.main()
