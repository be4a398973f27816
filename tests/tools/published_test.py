#!/usr/bin/env python3
"""validation/published: what a repeated row says, and what its page counts."""

import contextlib
import json
import os
import pathlib
import stat
import subprocess
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
    def repeated(self, output, error, ended_by=None, **columns):
        """The row after a program that writes this ran, under a metaprof that does nothing else."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            metaprof = folder / "metaprof"
            report = json.dumps(REPORT | {"ended_by": ended_by})
            metaprof.write_text(
                f"#!/bin/sh\ncat <<'E'\n{output}\nE\ncat >&2 <<'E'\n{error}\nE\ncat > {folder}/report.json <<'E'\n{report}\nE\n"
            )
            metaprof.chmod(metaprof.stat().st_mode | stat.S_IEXEC)
            environment = repeat.environment_of("torch==2.6.0", folder)
            environment.mkdir()
            (environment / "complete").touch()
            row = {"row": "a row", "arguments": "model full 4", "device": "a100", "gpus": "1", "versions": "torch==2.6.0", "published": "5",
                   "estimated": "1", "after_estimated": "1", "smi_estimated": "1", "reason": "an old one", **columns}
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

    def test_a_figure_has_the_unit_of_its_row(self):
        row = self.repeated(json.dumps({"peak": 2**30 + 2**29, "first": 2**30, "after": 3}), "", unit="GiB", first_estimated="")
        self.assertEqual((row["estimated"], row["first_estimated"], row["after_estimated"]), (1.5, 1.0, 3))

    def test_of_several_ranks_the_worst_counts(self):
        row = self.repeated('{"peak": 7, "after": 3}', "", options="--world-size 8 --ranks all-different")
        self.assertEqual(row["estimated"], 20 * MIB)

    def test_a_repository_is_read_at_a_commit(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            folder = pathlib.Path(folder)
            origin = folder / "origin"
            (origin / "src").mkdir(parents=True)

            def git(*words):
                return subprocess.run(["git", "-C", origin, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True, text=True)

            git("init", "--quiet")
            commits = []
            for text in ("first", "second"):
                (origin / "src/module.py").write_text(text)
                git("add", ".")
                git("commit", "--quiet", "-m", text)
                commits.append(git("rev-parse", "--short", "HEAD").stdout.strip())
            instead = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.{origin}.insteadOf", "GIT_CONFIG_VALUE_0": "https://github.com/owner/name"}
            before = {name: os.environ.get(name) for name in instead}
            stack.callback(lambda: [os.environ.pop(name) if value is None else os.environ.update({name: value}) for name, value in before.items()])
            os.environ.update(instead)
            found = repeat.source_of(f"owner/name@{commits[0]}", folder / "environments")
            self.assertEqual((found / "module.py").read_text(), "first")

    def test_a_program_whose_time_was_up_says_so(self):
        row = self.repeated("", "metaprof: 1 processes that the program had left running were ended", ended_by="--timeout after 9 s")
        self.assertEqual((row["estimated"], row["reason"]), ("", "ended by --timeout after 9 s"))

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

    def test_fewer_digits_are_equal_to_what_was_printed(self):
        self.assertTrue(page.is_equal({"published": "82.4", "estimated": "82.379"}))
        self.assertFalse(page.is_equal({"published": "82.4", "estimated": "82.46"}))
        self.assertTrue(page.is_equal({"published": "1394", "estimated": "1393.6"}))

    def test_rows_that_are_off_by_half_a_per_cent_are_listed_the_worst_first(self):
        rows = [{"row": name, "published": "1000", "estimated": estimated, "note": note}
                for name, estimated, note in (("a", "1004", ""), ("b", "1006", ""), ("c", "900", "why"), ("d", "", ""))]
        listed = page.differing_rows(rows).splitlines()[2:]
        self.assertEqual(listed, ["| c | 1,000 | 900 | -10.00 % | why |", "| b | 1,000 | 1,006 | +0.60 % | not explained |"])

    def test_what_was_not_repeated_says_what_happened(self):
        rows = [{"row": "a", "estimated": "", "reason": "an error"}, {"row": "b", "estimated": "", "reason": ""}, {"row": "c", "estimated": "1", "reason": ""}]
        self.assertEqual(page.missing_rows(rows, "row").splitlines()[2:], ["| a | 1 | `an error` |", "| b | 1 | `not tried` |"])

    def test_each_set_has_a_line_that_leads_to_it(self):
        text = page.page()
        for one in page.all_sets():
            self.assertIn(f"](#{page.anchor(one.title)})", text)
            self.assertIn(f"\n## {one.title}\n", text)
        self.assertEqual(page.anchor("Liger-Kernel's 2,048 losses"), "liger-kernels-2048-losses")

    def test_each_adapter_has_settings(self):
        for name in ("peft_image", "peft_llm"):
            settings = json.loads((repeat.HERE / f"{name}.json").read_text(encoding="utf-8"))
            for row in page.read(f"{name}.csv"):
                self.assertIn(row["arguments"].split()[0], settings)

    def test_verdicts_have_no_error(self):
        rows = [{"kind": "a", "published": "100", "estimated": "101"}, {"kind": "a", "published": "out of memory", "estimated": "out of memory"}]
        self.assertIn("| a | 2 | 2 | 1 | +1.00 % | +1.00 % |", page.summary(rows, lambda row: row["kind"], "kind"))


if __name__ == "__main__":
    unittest.main()
