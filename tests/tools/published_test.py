#!/usr/bin/env python3
"""validation/published: what a repeated row says, and what its page counts."""

import json
import pathlib
import stat
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation/published"))
import page  # noqa: E402
import repeat  # noqa: E402

MIB = 2**20
REPORT = {
    "ranks": [
        {"phases": [{"reserved_bytes": {"peak": 6 * MIB}}, {"reserved_bytes": {"peak": 10 * MIB}}], "outside_allocator": {"context": 5 * MIB, "libraries": None}},
        {"phases": [{"reserved_bytes": {"peak": 20 * MIB}}], "outside_allocator": {"context": 5 * MIB, "libraries": 0}},
    ]
}


class Repeat(unittest.TestCase):
    def repeated(self, output, error):
        """The row after a program that writes this ran, under a metaprof that does nothing else."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            metaprof = folder / "metaprof"
            metaprof.write_text(
                f"#!/bin/sh\ncat <<'E'\n{output}\nE\ncat >&2 <<'E'\n{error}\nE\ncat > {folder}/report.json <<'E'\n{json.dumps(REPORT)}\nE\n"
            )
            metaprof.chmod(metaprof.stat().st_mode | stat.S_IEXEC)
            environment = repeat.environment_of("torch==2.6.0", folder)
            environment.mkdir()
            (environment / "complete").touch()
            row = {"row": "a row", "arguments": "model full 4", "device": "a100", "gpus": "1", "versions": "torch==2.6.0", "published": "5",
                   "estimated": "1", "after_estimated": "1", "smi_estimated": "1", "reason": "an old one"}
            options = types.SimpleNamespace(set="fms_acceleration", metaprof=metaprof, folder=folder, environments=folder, timeout="9")
            repeat.repeat(options, row)
            return row

    def test_figures_are_those_that_the_program_prints(self):
        row = self.repeated('{"peak": 7, "after": 3}', "a warning")
        self.assertEqual((row["estimated"], row["after_estimated"], row["smi_estimated"], row["reason"]), (7, 3, 20, ""))

    def test_a_program_that_runs_out_of_memory_is_a_figure(self):
        row = self.repeated("", "torch.OutOfMemoryError: CUDA out of memory. Tried …")
        self.assertEqual((row["estimated"], row["reason"]), (repeat.OUT_OF_MEMORY, ""))

    def test_a_program_that_fails_says_why(self):
        row = self.repeated("", "Traceback\nValueError: no such model\n")
        self.assertEqual((row["estimated"], row["reason"]), ("", "ValueError: no such model"))

    def test_several_cards_are_started_as_the_benchmark_does(self):
        options = types.SimpleNamespace(set="fms_acceleration")
        command = repeat.command_of(options, {"arguments": "model full 4", "gpus": "2"}, "python")
        self.assertEqual(command[:3], ["python", "-m", "accelerate.commands.launch"])
        self.assertIn("2", command)


class Page(unittest.TestCase):
    def test_verdicts_are_equal_or_not(self):
        row = {"published": "out of memory", "estimated": "out of memory"}
        self.assertTrue(page.is_equal(row))
        self.assertFalse(page.is_equal(row | {"estimated": "12"}))
        self.assertFalse(page.is_equal(row | {"published": "12"}))

    def test_bytes_are_equal_to_the_last_digit(self):
        self.assertTrue(page.is_equal({"published": "72434837504", "estimated": "72434837504"}))
        self.assertFalse(page.is_equal({"published": "72434837504", "estimated": "72434837505"}))

    def test_verdicts_have_no_error(self):
        rows = [{"kind": "a", "published": "100", "estimated": "101"}, {"kind": "a", "published": "out of memory", "estimated": "out of memory"}]
        self.assertIn("| a | 2 | 2 | 1 | +1.00 % | +1.00 % |", page.summary(rows, lambda row: row["kind"], "kind"))


if __name__ == "__main__":
    unittest.main()
