"""What a program reads of an emulated device is what it would read: the programs of tests/data/values give there what they give on the CPU, line by line.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it.
"""
import ast
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "tests/data/values/programs.py"
METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
CLOSE = 1e-3  # sums of 32-bit numbers in another order
# How many of a program's answers follow from what is known: what a backward has computed, and cuDNN's weights, and what LAPACK says, are not.
KNOWN = {"a_checkpoint_that_is_loaded_to_the_device": 3, "recurrent_network_of_packed_sequences": 3, "optimizer_with_its_rate_on_the_device": 0, "early_stopping": 0, "different_coordinates": 2, "rate_that_follows_the_loss": 0, "gradients_that_are_clipped": 0, "gradients_that_a_hook_looks_at": 1,
         "gradients_that_overflow": 0, "loss_that_looks_at_its_gradient": 1, "optimizer_that_searches": 1, "what_is_computed_again": 0,
         "operators_that_read_before_they_choose": 5}


def answers(text):
    """Of each program: what it gave, as Python's values; or how it ended."""
    found = {}
    for line in text.splitlines():
        name, separator, value = line.partition("\t")
        if separator and name.isidentifier():
            try:
                found[name] = ast.literal_eval(value)
            except (SyntaxError, ValueError):
                found[name] = value
    return found


def close(one, other):
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return one == other


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class ValuesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.truth = answers(subprocess.run([PYTHON, PROGRAMS, "cpu"], capture_output=True, text=True, check=True).stdout)
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            run = subprocess.run([METAPROF, "run", "--json", report, "--", PYTHON, PROGRAMS, "cuda"], capture_output=True, text=True)
            cls.ended = run.returncode, run.stderr
            cls.told = answers(run.stdout)
            cls.reads = json.loads(report.read_text())["ranks"][0]["data_reads"]

    def test_the_program_ends_as_on_the_cpu(self):
        self.assertEqual(self.ended[0], 0, self.ended[1])
        self.assertEqual(list(self.told), list(self.truth))

    def test_each_answer_is_the_cpus(self):
        for name, truth in self.truth.items():
            with self.subTest(name):
                told = self.told[name]
                if name in KNOWN:
                    truth, told = truth[:KNOWN[name]], told[:KNOWN[name]]
                self.assertTrue(close(told, truth), f"{told} instead of {truth}")

    def test_each_answer_has_a_source(self):
        """Nothing is drawn on the device. Lines of programs whose answers are all known have known ones."""
        functions = [node for node in ast.parse(PROGRAMS.read_text()).body if isinstance(node, ast.FunctionDef)]
        for read in self.reads:
            line = int(read["line"].rpartition(":")[2])
            name = next(function.name for function in functions if function.lineno <= line <= function.end_lineno)
            with self.subTest(name, line=line):
                self.assertIn(read["source"], ("computed", "assumed", "unknown") if name in KNOWN or name == "distributions" else ("computed",))


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class NotKnownTest(unittest.TestCase):
    def test_what_cannot_be_known_is_not_said_to_be_computed(self):
        program = PROGRAMS.with_name("not_known.py")
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "report.json")
            run = subprocess.run([METAPROF, "run", "--json", report, "--", PYTHON, program], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            sources = {int(read["line"].rpartition(":")[2]): read["source"] for read in json.loads(report.read_text())["ranks"][0]["data_reads"]}
        lines = program.read_text().splitlines()
        expected = {number: "unknown" if line.startswith("print") else "computed" for number, line in enumerate(lines, 1) if ".item()" in line}
        self.assertEqual(sources, expected)

    def test_a_program_that_ends_after_an_unknown_answer_is_told_what_to_assume(self):
        text = "import torch\nvalues = torch.empty(4, device='cuda')\nfound = values.sum().item()\nprint(1 / found)\n"
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(text)
            run = subprocess.run([METAPROF, "run", "--", PYTHON, program], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(f"try --assume {program}:3=N", run.stdout + run.stderr)
            run = subprocess.run([METAPROF, "run", "--assume", f"{program}:3=2", "--", PYTHON, program], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("0.5", run.stdout)

    def test_checks_of_torch_pass_also_while_the_program_is_saved(self):
        text = ("import torch\nlogits = torch.empty(4, 3, device='cuda') * 2\nd = torch.distributions.Categorical(logits=logits)\n"
                "print(d.log_prob(d.sample()).shape)\n")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(text)
            for words in ([], ["--save", pathlib.Path(folder, "program.mp")]):
                run = subprocess.run([METAPROF, "run", *words, "--", PYTHON, program], capture_output=True, text=True)
                self.assertIn("torch.Size([4])", run.stdout, run.stderr)

    def test_a_mask_of_unknown_numbers_has_no_element_set_or_all(self):
        text = ("import torch\nnumbers = torch.empty(6, 4, device='cuda')\nmask = numbers[:, 0] > 0\n"
                "print(len(numbers[mask]), len(mask.nonzero()), len(numbers.masked_select(mask[:, None])), len(numbers.sum(1).unique()))\n"
                "print(len(torch.arange(5, device='cuda')[torch.tensor([True, False, True, False, False], device='cuda')]))\n")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(text)
            for words, counts in (([], "0 0 0 0\n2\n"), (["--assume", "all"], "6 6 24 6\n2\n")):
                run = subprocess.run([METAPROF, "run", *words, "--", PYTHON, program], capture_output=True, text=True)
                self.assertIn(counts, run.stdout, run.stderr)
                self.assertEqual("--assume both" in run.stdout, not words)


if __name__ == "__main__":
    unittest.main()
