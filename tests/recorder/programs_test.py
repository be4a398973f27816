"""Programs that end in every way that a program can: what `metaprof run` says, and its exit status.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it. The program is METAPROF (by default the one of the release build).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))

TRAINING = """
import os, signal, sys, threading, time
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters())
def step():
    loss = net(torch.zeros(4, 64, device="cuda")).sum()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
"""

# name: (options, program after TRAINING, exit status, part of what is said)
PROGRAMS = {
    "runs to its end": ([], "step()", 0, "Fits on h200"),
    "its own exit status": ([], "step(); sys.exit(5)", 5, "Fits on h200"),
    "an exception": ([], "step(); raise ValueError('mine')", 1, "ValueError: mine"),
    "an endless loop is ended after the steps": (["--steps", "2"], "while True: step()", 0, "ended after the steps"),
    "an endless loop after the steps": (["--steps", "1"], "step()\nwhile True: time.sleep(0.01)", 0, "ended after the steps"),
    "an endless loop without steps": (["--timeout", "25"], "step()\nwhile True: time.sleep(0.01)", 2, "the program was ended after 25 s"),
    "exception in backward": ([], """
        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g): raise RuntimeError('in my backward')
        Broken.apply(net(torch.zeros(4, 64, device='cuda'))).sum().backward()""", 1, "in my backward"),
    "exception in backward that is caught": ([], """
        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 1
            @staticmethod
            def backward(ctx, g): raise RuntimeError('in my backward')
        try: Broken.apply(net(torch.zeros(4, 64, device='cuda'))).sum().backward()
        except RuntimeError: pass
        step()""", 0, "Fits on h200"),
    "a wrong device": ([], "torch.zeros(1, device='cuda:7')", 1, "invalid device ordinal"),
    "os._exit": ([], "step(); os._exit(3)", 3, "Fits on h200"),
    "killed by itself": ([], "step(); os.kill(os.getpid(), signal.SIGKILL)", 137, "ended by signal 9"),
    "a crash": ([], "step(); import ctypes; ctypes.string_at(0)", 139, "ended by signal 11"),
    "abort": ([], "step(); os.abort()", 134, "ended by signal 6"),
    "out of memory": (["--memory", "1GiB"], "x = torch.zeros(2 << 30, device='cuda')", 1, "which asks for 8.0 GiB while"),
    "out of memory that is caught": (["--memory", "1GiB"], """
        try: torch.zeros(2 << 30, device='cuda')
        except torch.OutOfMemoryError: print('smaller')
        step()""", 0, "the program went on"),
    "a fork after the device was used": ([], """
        step()
        if os.fork() == 0:
            try: torch.zeros(1, device='cuda')
            except RuntimeError as error: print(error)
            os._exit(0)
        os.wait(); step()""", 0, "Fits on h200"),
    "threads": ([], """
        threads = [threading.Thread(target=lambda: torch.zeros(1000, device='cuda')) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]; step()""", 0, "Fits on h200"),
    "children that are left behind": ([], "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); step()", 0,
                                      "1 processes that the program had left running were ended"),
    "its own peaks": ([], """
        torch.zeros(1 << 20, device='cuda'); step()
        assert torch.cuda.max_memory_allocated() >= 4 << 20
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()""", 0, "Fits on h200"),
    "its own history": ([], """
        torch.cuda.memory._record_memory_history()
        step(); assert torch.cuda.memory._snapshot()['device_traces'][0]""", 0, "Fits on h200"),
    "its own profiler": ([], """
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p: step()
        assert any('mm' in e.key for e in p.key_averages())""", 0, "Fits on h200"),
    "its own hooks": ([], """
        seen = []
        net.register_forward_hook(lambda *a: seen.append(1))
        step(); assert seen == [1]""", 0, "Fits on h200"),
    "the device is not used": ([], None, 2, "the program used no CUDA device"),
}


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class ProgramsTest(unittest.TestCase):
    def test_programs(self):
        only = os.environ.get("METAPROF_PROGRAM")
        for name, (options, text, status, said) in PROGRAMS.items():
            if only and only not in name:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                program = pathlib.Path(folder) / "program.py"
                program.write_text("import torch\n" if text is None else TRAINING + textwrap.dedent(text) + "\n")
                begin = time.monotonic()
                result = subprocess.run([METAPROF, "run", *options, "--", PYTHON, program], capture_output=True, text=True, timeout=300)
                print(f"{name}: {result.returncode}, {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
                self.assertIn(said, result.stdout + result.stderr)
                self.assertEqual(result.returncode, status, result.stderr)


if __name__ == "__main__":
    unittest.main()
