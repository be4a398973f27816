"""Programs that need no PyTorch, and end in every way that a program can: what `metaprof run` says, and its exit status."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import programs  # noqa: E402

NO_TORCH = "the program did not import PyTorch"
BEFORE_TORCH = "ended before it had imported PyTorch"
ENDED = "that the program had left running were ended"
TORCH = "class version: cuda = {cuda!r}\n__version__ = {version!r}\n"

# name: (options, program, exit status, part of what is said, further files)
PROGRAMS = {
    # exit statuses
    "runs to its end": ([], "print('mine')", 2, NO_TORCH, {}),
    "sys.exit(4)": ([], "import sys; sys.exit(4)", 4, BEFORE_TORCH, {}),
    "sys.exit(300) is 44": ([], "import sys; sys.exit(300)", 44, BEFORE_TORCH, {}),
    "sys.exit(-1) is 255": ([], "import sys; sys.exit(-1)", 255, BEFORE_TORCH, {}),
    "sys.exit of a text": ([], "import sys; sys.exit('my words')", 1, "my words", {}),
    "os._exit": ([], "import os; os._exit(3)", 3, BEFORE_TORCH, {}),
    "an exception": ([], "raise ValueError('mine')", 1, "ValueError: mine", {}),
    "a syntax error": ([], "x = = 1", 1, "SyntaxError", {}),
    "bytes that are no text": ([], "x = '\0'", 1, BEFORE_TORCH, {}),
    "an endless recursion": ([], "def f(): f()\nf()", 1, "RecursionError", {}),
    "no host memory": ([], "bytearray(1 << 62)", 1, BEFORE_TORCH, {}),

    # signals
    "SIGTERM to itself": ([], "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143, "ended by signal 15", {}),
    "SIGINT to itself": ([], "import os, signal; os.kill(os.getpid(), signal.SIGINT)", 130, "KeyboardInterrupt", {}),
    "SIGKILL to itself": ([], "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137, "ended by signal 9", {}),
    "SIGSEGV": ([], "import ctypes; ctypes.string_at(0)", 139, "ended by signal 11", {}),
    "SIGABRT": ([], "import os; os.abort()", 134, "ended by signal 6", {}),
    "SIGPIPE": ([], "import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGPIPE)", 141, "ended by signal 13", {}),
    "SIGKILL to a child": ([], """
        import signal, subprocess
        child = subprocess.Popen(['sleep', '1000']); child.kill(); print('child gave', child.wait())""", 2, "child gave -9", {}),
    "SIGTERM to its group is its own affair": ([], """
        import os, signal
        os.setsid(); signal.signal(signal.SIGTERM, lambda *_: print('heard')); os.killpg(0, signal.SIGTERM)""", 2, "heard", {}),

    # that do not end
    "an endless loop": (["--timeout", "2"], "while True: pass", 2, "the program was ended after 2 s", {}),
    "sleeps for ever": (["--timeout", "2"], "import time; time.sleep(1e6)", 2, "the program was ended after 2 s", {}),
    "SIGTERM is ignored": (["--timeout", "2"], "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1e6)", 2, "ended after 2 s", {}),
    "stops itself": (["--timeout", "2"], "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", 2, "the program was ended after 2 s", {}),
    "an endless exit handler": (["--timeout", "3"], "import atexit, time; atexit.register(lambda: time.sleep(1e6))", 2, "ended after 3 s", {}),
    "a thread that never ends": (["--timeout", "3"], "import threading, time; threading.Thread(target=time.sleep, args=(1e6,)).start()", 2, "ended after 3 s", {}),

    # processes
    "a child that is left behind": ([], "import subprocess; subprocess.Popen(['sleep', '1000'])", 2, ENDED, {}),
    "a session of its own is left behind": ([], "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)", 2, ENDED, {}),
    "a daemon by two forks": ([], """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0: time.sleep(1000)
            os._exit(0)
        os.wait()""", 2, ENDED, {}),
    "a tree of processes": ([], "import subprocess; subprocess.Popen(['sh', '-c', '(sleep 1000 & sleep 1000) & (sh -c \"sleep 1000 & sleep 1000\") & wait'])", 2, ENDED, {}),
    "children that refuse to end": ([], "import subprocess; subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 1000 & wait; wait'])", 2, ENDED, {}),
    "a zombie": ([], "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(0.2)", 2, NO_TORCH, {}),
    "200 zombies": ([], "import os\nfor _ in range(200):\n    if os.fork() == 0: os._exit(0)", 2, NO_TORCH, {}),
    "becomes another program": ([], "import os; os.execvp('true', ['true'])", 2, NO_TORCH, {}),

    # its surroundings
    "the environment is cleared": ([], "import os, subprocess, sys; os.environ.clear(); sys.exit(subprocess.call([sys.executable, '-c', 'print(1)']) + 9)", 9, BEFORE_TORCH, {}),
    "the working folder is gone": ([], "import os, tempfile; f = tempfile.mkdtemp(); os.chdir(f); os.rmdir(f); print('none')", 2, "none", {}),
    "the recorder's folder is gone": ([], "import os, shutil; shutil.rmtree(os.environ['METAPROF_RECORD'])", 2, "nothing was recorded", {}),
    "the recorder's folder has rubbish": ([], """
        import os
        open(os.path.join(os.environ['METAPROF_RECORD'], 'process-1.jsonl'), 'w').write('{"row": \\n\\0')""", 2, "JSON syntax error", {}),
    "stdout is closed": ([], "import os; os.close(1)", 2, NO_TORCH, {}),
    "stdout and stderr are closed": ([], "import os; os.close(1); os.close(2)", 2, NO_TORCH, {}),
    "much output": ([], "for _ in range(4000): print('x' * 5000)", 2, NO_TORCH, {}),
    "stdin is at its end": ([], "input()", 1, "EOFError", {}),
    "a sitecustomize of its own": (["--env", "PYTHONPATH_UNUSED=1"], "import sitecustomize", 2, NO_TORCH, {}),

    # PyTorch that cannot be recorded
    "PyTorch for the CPU": ([], "import torch", 2, "PyTorch 2.11.0+cpu is built for the CPU only", {"torch.py": TORCH.format(cuda=None, version="2.11.0+cpu")}),
    "PyTorch that is too old": ([], "import torch", 2, "PyTorch 1.13.1 is not known: install one of 2.6 to 2.15", {"torch.py": TORCH.format(cuda="11.7", version="1.13.1")}),
    "PyTorch that is too new": ([], "import torch", 2, "PyTorch 3.0.0 is not known", {"torch.py": TORCH.format(cuda="14.0", version="3.0.0")}),
    "a version that is no number": ([], "import torch", 2, "PyTorch nightly is not known", {"torch.py": TORCH.format(cuda="13.0", version="nightly")}),
    "a torch.py of its own": ([], "import torch", 2, "the module torch that it imports is not PyTorch", {"torch.py": "mine = 1\n"}),
    "PyTorch in part": ([], "import torch", 2, "the recorder cannot be attached to PyTorch 2.11.0", {"torch.py": TORCH.format(cuda="13.0", version="2.11.0")}),
    "PyTorch that cannot be imported": ([], "import torch", 1, "libmissing.so", {"torch.py": "raise ImportError('libmissing.so: cannot open')"}),
    "PyTorch that cannot be imported, tried twice": ([], """
        for _ in range(2):
            try: import torch
            except ImportError as error: print('no:', error)""", 2, "nothing was recorded", {"torch.py": "raise ImportError('libmissing.so')"}),
    "PyTorch that ends the program": ([], "import torch", 7, "nothing was recorded", {"torch.py": "import sys; sys.exit(7)"}),
    "only asks whether there is a PyTorch": ([], "import importlib.util; print(importlib.util.find_spec('torch'))", 2, NO_TORCH, {"torch.py": ""}),
}

# name: (the words after `metaprof run`, exit status, part of what is said); {python}
COMMANDS = {
    "no program": ([], 2, "no program given"),
    "no such program": (["--", "/no/such/program"], 2, "there is no such program"),
    "a file that cannot be run": (["--", "/etc/passwd"], 2, "cannot be run"),
    "a folder": (["--", "/tmp"], 2, "cannot be run"),
    "not Python": (["--", "true"], 2, "the recorder was not loaded"),
    "not Python, and fails": (["--", "false"], 1, "the recorder was not loaded"),
    "isolated Python": (["--", "{python}", "-I", "-c", "print(1)"], 2, "-I, -E or -S"),
    "Python without its environment": (["--", "{python}", "-E", "-c", "print(1)"], 2, "-I, -E or -S"),
    "Python without site": (["--", "{python}", "-S", "-c", "print(1)"], 2, "-I, -E or -S"),
    "a script that is not there": (["--", "{python}", "/no/such/script.py"], 2, "can't open file"),
    "a module that is not there": (["--", "{python}", "-m", "no_such_module"], 1, "No module named"),
    "an unknown device": (["--device", "h2000", "--", "true"], 2, "h2000"),
    "a device that is no GPU": (["--device", "cpu", "--", "true"], 2, "a program is run on a CUDA device"),
    "a size that is none": (["--memory", "lots", "--", "true"], 2, "lots"),
    "no GPUs": (["--gpus", "0", "--", "true"], 2, "--gpus"),
    "17 GPUs": (["--gpus", "17", "--", "true"], 2, "--gpus"),
    "no steps": (["--steps", "0", "--", "true"], 2, "--steps"),
    "a timeout that is none": (["--timeout", "soon", "--", "true"], 2, "--timeout"),
    "a rank without a world": (["--rank", "1", "--", "true"], 2, "--rank needs --world-size"),
    "a rank that is not in the world": (["--world-size", "4", "--rank", "4", "--", "true"], 2, "there are ranks 0 to 3"),
    "both answers and all": (["--assume", "both", "--assume", "all", "--", "true"], 2, "--assume both runs the program with `all`, too: give one of them"),
    "both answers of a saved program": (["--assume", "both", "--save", "both.mp", "--", "true"], 2, "--assume both runs the program twice: --save takes one run, with --assume all or without it"),
    "both answers of fixes": (["--assume", "both", "--fixes", "--", "true"], 2, "--assume both runs the program twice: --fixes takes one run, with --assume all or without it"),
    "ranks without a world": (["--ranks", "all-different", "--", "true"], 2, "--ranks needs --world-size"),
    "ranks of another kind": (["--world-size", "4", "--ranks", "all", "--", "true"], 2, "--ranks"),
    "ranks that are none": (["--world-size", "4", "--rank", "0,last", "--", "true"], 2, "--rank 0,last: expected a rank, or several as 0,31,63"),
    "a rank twice": (["--world-size", "4", "--rank", "1,2,1", "--", "true"], 2, "--rank 1,2,1: 1 is named twice"),
    "no rank": (["--world-size", "4", "--rank", "1,,2", "--", "true"], 2, "expected a rank, or several as 0,31,63"),
    "named ranks and different ones": (["--world-size", "4", "--rank", "1", "--ranks", "all-different", "--", "true"], 2,
                                       "--rank names the ranks that --ranks finds: give one of them"),
    "an assumption that is none": (["--assume", "half", "--", "true"], 2, "--assume half: expected"),
    "a variable without a value": (["--env", "NAME", "--", "true"], 2, "is no NAME=VALUE"),
    "a program's file of another kind": (["--save", "step.txt", "--", "true"], 2, "the file's name must end in .mp"),
    "a report in no folder": (["--json", "/no/such/folder/run.json", "--", "{python}", "-c", "import os; os._exit(99)"], 2, "/no/such/folder"),
    "a page in no folder": (["--html", "/no/such/folder/run.html", "--", "true"], 2, "/no/such/folder"),
    "a program in no folder": (["--save", "/no/such/folder/step.mp", "--", "true"], 2, "/no/such/folder"),
    "a real device and a described one": (["--real", "--device", "h100", "--", "true"], 2, "has no effect with --real"),
    "a history without a report": (["--events", "--", "true"], 2, "--events needs --json FILE.json: the history is written beside it, as FILE.log.gz"),
    "a history in no folder": (["--events", "--json", "/no/such/folder/run.json", "--", "true"], 2, "/no/such/folder"),
    "a wrong configuration of the allocator": (["--alloc-conf", "no_such_setting:1", "--", "true"], 2, "no_such_setting"),
}


class ProgramsWithoutTorchTest(programs.ProgramsTest):
    def test_programs(self):
        for name, (options, text, status, said, files) in PROGRAMS.items():
            self.check_program(name, options, text, status, said, files=files)

    def test_commands(self):
        for name, (words, status, said) in COMMANDS.items():
            self.check(name, [word.format(python=sys.executable) for word in words], status, said)

    def test_temporary_folders_that_are_not_there(self):
        os.environ["TMPDIR"] = "/no/such/folder"
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.check("no folder for temporary files", ["--", "true"], 2, "/no/such/folder")


if __name__ == "__main__":
    unittest.main()
