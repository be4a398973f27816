"""The recorder is there before the program's first line, changes nothing, and says what it cannot record. Needs no PyTorch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

RECORDER = pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"
sys.path.insert(0, str(RECORDER))
from metaprof_recorder.bootstrap import problem_with  # noqa: E402

FAKE_TORCH = """
class version: cuda = {cuda!r}
__version__ = {version!r}
"""


class BootstrapTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.record = self.folder / "record"
        self.record.mkdir()

    def run_python(self, text, *options, modules=None):
        (self.folder / "program.py").write_text(textwrap.dedent(text))
        for name, content in (modules or {}).items():
            (self.folder / f"{name}.py").write_text(content)
        environment = os.environ | {"PYTHONPATH": f"{RECORDER}:{self.folder}", "METAPROF_RECORD": str(self.record)}
        return subprocess.run([sys.executable, *options, self.folder / "program.py"], env=environment, capture_output=True, text=True)

    def rows(self):
        return [json.loads(line) for file in sorted(self.record.glob("*.jsonl")) for line in file.read_text().splitlines()]

    def test_a_program_without_torch_runs_as_ever(self):
        result = self.run_python("import sys; print('hello'); sys.exit(3)")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (3, "hello\n", ""))
        self.assertEqual([row["row"] for row in self.rows()], ["process"])

    def test_variables_that_decide_memory_are_recorded(self):
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"
        self.addCleanup(os.environ.pop, "CUBLAS_WORKSPACE_CONFIG")
        self.run_python("")
        self.assertEqual(self.rows()[0]["environment"]["CUBLAS_WORKSPACE_CONFIG"], ":16:8")

    def test_the_folder_is_not_on_the_programs_path(self):
        result = self.run_python(f"import sys; print({str(RECORDER)!r} in sys.path)")
        self.assertEqual(result.stdout, "False\n")

    def test_a_sitecustomize_of_the_users_own_runs(self):
        result = self.run_python("import sitecustomize; print(sitecustomize.mine)", modules={"sitecustomize": "mine = 'yes'\nprint('started')\n"})
        self.assertEqual(result.stdout, "started\nyes\n")

    def test_within_another_run_one_recorder_is_attached(self):
        """`metaprof run --real` of another installation within an emulated run."""
        (self.folder / "metaprof_recorder").symlink_to(RECORDER / "metaprof_recorder")
        (self.folder / "sitecustomize.py").write_text((RECORDER / "sitecustomize.py").read_text())
        result = self.run_python("import sys; print(sum(type(finder).__name__ == 'AfterImport' for finder in sys.meta_path))")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "1\n", ""))

    def test_a_torch_for_the_cpu_ends_the_program(self):
        result = self.run_python("import torch; print('not reached')", modules={"torch": FAKE_TORCH.format(version="2.11.0+cpu", cuda=None)})
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(self.rows()[-1]["kind"], "cpu-only")

    def test_an_unknown_version_ends_the_program(self):
        result = self.run_python("import torch", modules={"torch": FAKE_TORCH.format(version="1.13.1", cuda="11.7")})
        self.assertEqual(result.returncode, 2)
        self.assertIn("PyTorch 1.13.1 is not known: install one of 2.6 to 2.15", self.rows()[-1]["text"])

    def test_who_only_asks_where_torch_is_does_not_keep_the_recorder_away(self):
        text = "import importlib.util\nassert importlib.util.find_spec('torch').name == 'torch'\nimport torch\nprint('not reached')"
        result = self.run_python(text, modules={"torch": FAKE_TORCH.format(version="1.13.1", cuda="11.7")})
        self.assertEqual((result.returncode, result.stdout), (2, ""))

    def test_isolated_python_records_nothing(self):
        self.assertEqual(self.run_python("print(1)", "-I").stdout, "1\n")
        self.assertEqual(self.rows(), [])

    def test_a_program_that_closes_all_files_keeps_its_own(self):
        result = self.run_python("""
            import os, sys
            os.closerange(3, 100)
            own = [open(f"{sys.argv[0]}.{i}", "w+") for i in range(9)]
            import torch""", modules={"torch": FAKE_TORCH.format(version="1.13.1", cuda="11.7")})
        self.assertEqual(result.returncode, 2)
        self.assertEqual([row["row"] for row in self.rows()], ["process", "torch", "problem"])
        self.assertEqual({file.stat().st_size for file in self.folder.glob("program.py.*")}, {0})

    def test_what_cannot_be_written_is_said_once_and_is_no_error_of_the_program(self):
        result = self.run_python("""
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
            from metaprof_recorder.process.output import Output
            import os
            output = Output(os.environ["METAPROF_RECORD"])
            for _ in range(3): output.header()
            print("goes on", file=__import__("sys").stderr)""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("what is recorded could not be written"), 1)
        self.assertIn("goes on", result.stderr)

    def test_versions(self):
        for version in ("2.6.0+cu124", "2.11.0", "2.15.0a0+git"):
            self.assertIsNone(problem_with(version, "13.0"))
        for version in ("2.5.1", "2.16.0", "3.0", "nightly"):
            self.assertEqual(problem_with(version, "13.0")[0], "version")

    def test_versions_that_are_newer_than_the_known_ones_can_be_asked_for(self):
        os.environ["METAPROF_RECORD_UNKNOWN"] = "1"
        self.addCleanup(os.environ.pop, "METAPROF_RECORD_UNKNOWN")
        self.assertIsNone(problem_with("2.16.0", "13.0"))
        for version in ("2.5.1", "nightly"):
            self.assertEqual(problem_with(version, "13.0")[0], "version")


if __name__ == "__main__":
    unittest.main()
