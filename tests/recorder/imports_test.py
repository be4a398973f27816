"""Which folders of the recorder import which, and what is imported when."""
import ast
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDER = ROOT / "capture/recorder"
PACKAGE = RECORDER / "metaprof_recorder"


def folder_of(path):
    """"" of the package's own files."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imported(path):
    """Folders and files of the package that a file imports, as far as it does so at once."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE.name:
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE.name}."):
            yield node.module.split(".")[1]


class FoldersTest(unittest.TestCase):
    def test_each_imports_only_those_above_it_in_the_layout(self):
        row = re.search(r"\| `capture/recorder/metaprof_recorder/` \|([^|]*)\|", (ROOT / "docs/reference/layout.md").read_text())[1]
        order = re.findall(r"`(\w+)/`", row)
        self.assertEqual(set(order), {path.parent.name for path in PACKAGE.glob("*/__init__.py")})
        for path in sorted(PACKAGE.rglob("*.py")):
            folder = folder_of(path)
            if folder:
                above = {*order[:order.index(folder) + 1], "FOLDER"}
                self.assertLessEqual(set(imported(path)), above, path)

    def test_bootstrap_imports_the_rest_later(self):
        found = {path.name: set(imported(path)) for path in PACKAGE.glob("*.py")}
        self.assertEqual(found["bootstrap.py"], {"process"})
        self.assertNotIn("recorder", found["results.py"])
        self.assertEqual(found["__init__.py"], set())


class BeforeTorchTest(unittest.TestCase):
    def modules(self, text):
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(RECORDER)!r}); before = set(sys.modules); {text}; "
                   "print(*sorted(set(sys.modules) - before))"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    def test_until_the_program_imports_torch_there_is_only_what_waits_for_it(self):
        own = [name for name in self.modules("import metaprof_recorder.bootstrap") if name.startswith(PACKAGE.name)]
        self.assertEqual(own, ["metaprof_recorder", "metaprof_recorder.bootstrap", "metaprof_recorder.process", "metaprof_recorder.process.environment",
                               "metaprof_recorder.process.import_hook", "metaprof_recorder.process.output"])

    def test_the_recorder_imports_nothing_but_the_standard_library(self):
        others = [name for name in self.modules("import metaprof_recorder.recorder") if not name.startswith(PACKAGE.name)]
        self.assertEqual([name for name in others if name.partition(".")[0] not in sys.stdlib_module_names], [])


if __name__ == "__main__":
    unittest.main()
