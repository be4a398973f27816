"""What the tool for hostile programs finds, with a `metaprof run` that only runs the program."""
import pathlib
import re
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import run_hostile_programs as hostile  # noqa: E402

METAPROF = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
"$@"
"""


class RunHostileProgramsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.metaprof = self.folder / "metaprof"
        self.metaprof.write_text(METAPROF)
        self.metaprof.chmod(0o755)

    def differences(self, head, text):
        path = self.folder / "program.py"
        path.write_text("# what happens\n" + "".join(f"# {line}\n" for line in head) + textwrap.dedent(text))
        program = hostile.read_program(path)
        return hostile.differences(program, hostile.run(program, str(self.metaprof), sys.executable))

    def test_as_stated(self):
        head = ["status: 3", "says: mine", "says: seven", "never: yours", "stdin: seven", "environment: WORD=mine", "leaves: own-*", "writes: result"]
        self.assertEqual(self.differences(head, """
            import os, sys
            print(os.environ["WORD"], input())
            open(os.environ["TMPDIR"] + "/own-1", "w"); open("result", "w").write("1")
            sys.exit(3)"""), [])

    def test_what_is_not_as_stated(self):
        found = self.differences(["status: 3", "says: yours", "never: mine", "writes: result"], "print('mine')")
        self.assertEqual(found, ["status 0, not 3", "does not say 'yours'", "says 'mine'", "does not write result"])

    def test_what_is_left(self):
        found = self.differences(["status: 0", "says: mine"], """
            import os, subprocess
            subprocess.Popen(["sleep", "987"]); open(os.environ["TMPDIR"] + "/forgotten", "w"); print("mine")""")
        self.assertEqual(found, ["leaves sleep 987 running", "leaves the file forgotten"])

    def test_errors_of_the_recorders_own(self):
        (self.folder / "metaprof_recorder").mkdir()
        (self.folder / "metaprof_recorder/recorder.py").write_text("def call(function):\n    function()\n\ndef fail():\n    raise KeyError(1)\n")
        text = f"import sys; sys.path.insert(0, {str(self.folder)!r})\nfrom metaprof_recorder.recorder import call, fail\n"
        head = ["status: 1", "says: Error"]
        self.assertEqual(self.differences(head, text + "call(lambda: 1 / 0)"), [])
        self.assertRegex(self.differences(head, text + "fail()")[0], re.compile("an error of the recorder's own: .*line 5, in fail"))

    def test_heads(self):
        programs = hostile.programs_of(hostile.PROGRAMS)
        self.assertGreaterEqual(len(programs), 96)
        self.assertEqual(len({program.what for program in programs}), len(programs))
        for head in ("# only what happens\n", "# what\n# status: 0\n", "# what\n# status: 0\n# says: x\n# colour: red\n", ""):
            (self.folder / "odd.py").write_text(head)
            with self.assertRaises(ValueError):
                hostile.read_program(self.folder / "odd.py")


if __name__ == "__main__":
    unittest.main()
