"""Programs that end in every way that a program can: what `metaprof run` says, and its exit status.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it. Those that need none are in programs_without_torch_test.py.
"""
import os
import pathlib
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import programs  # noqa: E402

PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")

TRAINING = """
import os, signal, sys, threading, time
import torch
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters())
def step():
    loss = net(torch.zeros(4, 64, device="cuda")).sum()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
"""

class Whole(str):
    """A program that does not begin with TRAINING."""


RANKS = """
import os, signal, sys, time
if "RANK" not in os.environ:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__])
import torch, torch.distributed as dist
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
x = torch.ones(1000, device="cuda")
"""


def ranks(text):
    """A program of two ranks."""
    return Whole(RANKS + textwrap.dedent(text))


# name: (options, program after TRAINING, exit status, part of what is said)
PROGRAMS = {
    "runs to its end": ([], "step()", 0, "FITS h200"),
    "its own exit status": ([], "step(); sys.exit(5)", 5, "FITS h200"),
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
        step()""", 0, "FITS h200"),
    "a wrong device": ([], "torch.zeros(1, device='cuda:7')", 1, "invalid device ordinal"),
    "os._exit": ([], "step(); os._exit(3)", 3, "FITS h200"),
    "killed by itself": ([], "step(); os.kill(os.getpid(), signal.SIGKILL)", 137, "ended by signal 9"),
    "a crash": ([], "step(); import ctypes; ctypes.string_at(0)", 139, "ended by signal 11"),
    "abort": ([], "step(); os.abort()", 134, "ended by signal 6"),
    "out of memory": (["--memory", "1GiB"], "x = torch.zeros(2 << 30, device='cuda')", 1, "it asks for 8.0 GiB while"),
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
        os.wait(); step()""", 0, "FITS h200"),
    "threads": ([], """
        threads = [threading.Thread(target=lambda: torch.zeros(1000, device='cuda')) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]; step()""", 0, "FITS h200"),
    "children that are left behind": ([], "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); step()", 0,
                                      "1 processes that the program had left running were ended"),
    "its own peaks": ([], """
        torch.zeros(1 << 20, device='cuda'); step()
        assert torch.cuda.max_memory_allocated() >= 4 << 20
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()""", 0, "FITS h200"),
    "its own history": ([], """
        torch.cuda.memory._record_memory_history()
        step(); assert torch.cuda.memory._snapshot()['device_traces'][0]""", 0, "FITS h200"),
    "its own profiler": ([], """
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p: step()
        assert any('mm' in e.key for e in p.key_averages())""", 0, "FITS h200"),
    "its own hooks": ([], """
        seen = []
        net.register_forward_hook(lambda *a: seen.append(1))
        step(); assert seen == [1]""", 0, "FITS h200"),
    "the device is not used": ([], Whole("import torch"), 2, "the program used no CUDA device"),

    # how it ends
    "exit with a text": ([], "step(); sys.exit('my words')", 1, "my words"),
    "an interrupt": ([], "step(); raise KeyboardInterrupt", 130, "ended by signal 2"),
    "ended by SIGTERM": ([], "step(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", 143, "ended by signal 15"),
    "an alarm": ([], "step(); signal.alarm(1); time.sleep(60)", 142, "ended by signal 14"),
    "a signal that it handles": ([], "signal.signal(signal.SIGUSR1, lambda *_: step()); os.kill(os.getpid(), signal.SIGUSR1); step()", 0, "FITS h200"),
    "an endless recursion": ([], "def f(): f()\nstep(); f()", 1, "RecursionError"),
    "no host memory": ([], "step(); bytearray(1 << 60)", 1, "MemoryError"),
    "a syntax error": ([], Whole("import torch; ="), 1, "SyntaxError"),
    "a module that is not there": ([], Whole("import torch, no_such_module"), 1, "No module named"),
    "an end before PyTorch": ([], Whole("import sys; sys.exit(4)"), 4, "ended before it had imported PyTorch"),
    "PyTorch is not imported": ([], Whole("print(1)"), 2, "did not import PyTorch"),
    "an exit handler that fails": ([], "import atexit; atexit.register(lambda: 1 / 0); step()", 0, "ZeroDivisionError"),
    "an exit handler that uses the device": ([], "import atexit; atexit.register(step); step()", 0, "FITS h200"),
    "becomes another program": ([], "step(); os.execv(sys.executable, [sys.executable, '-S', '-c', 'print(5)'])", 0, "FITS h200"),
    "stdin is at its end": ([], "step(); input()", 1, "EOFError"),

    # threads and processes
    "a thread that never ends": (["--timeout", "40"], "threading.Thread(target=lambda: time.sleep(1000)).start(); step()", 2, "was ended after 40 s"),
    "a daemon thread that never ends": ([], "threading.Thread(target=lambda: time.sleep(1000), daemon=True).start(); step()", 0, "FITS h200"),
    "training in a thread": ([], "t = threading.Thread(target=step); t.start(); t.join()", 0, "FITS h200"),
    "an exception in a thread": ([], "t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); step()", 0, "ZeroDivisionError"),
    "a child that uses the device": ([], """
        import subprocess
        subprocess.run([sys.executable, '-c', 'import torch; torch.zeros(9, device="cuda"); print("child")'], check=True); step()""", 0, "Ranks"),
    "children by spawn": ([], Whole("""
        import torch, torch.multiprocessing as processes
        def work(number): torch.zeros(1000, device="cuda")
        if __name__ == "__main__": processes.spawn(work, nprocs=2)"""), 0, "FITS h200"),
    "a fork before the device is used": ([], Whole("""
        import os, torch
        child = os.fork()
        torch.zeros(1000, device="cuda")
        if child: os.wait()"""), 0, "Ranks"),
    "a child by fork that is left behind": ([], "step()\nif os.fork() == 0: time.sleep(1000)", 0, "1 processes that the program had left running were ended"),
    "a daemon by two forks": ([], "step()\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)", 0,
                              "1 processes that the program had left running were ended"),
    "children that refuse to end": ([], "import subprocess; step()\nfor _ in range(3): subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 1000 & wait; wait'])", 0,
                                    "that the program had left running were ended"),

    # the device
    "no device is visible": (["--env", "CUDA_VISIBLE_DEVICES="], "step()", 1, "No CUDA GPUs are available"),
    "all of the device": ([], """
        kept = []
        try:
            while True: kept.append(torch.empty(1 << 30, device="cuda"))
        except torch.OutOfMemoryError: print(len(kept), "blocks")
        kept.clear(); step()""", 0, "blocks"),
    "memory taken from the runtime": ([], """
        import ctypes
        address = ctypes.c_void_p()
        torch.cuda.init(); runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 << 20)) == 0; step()""", 0, "outside the allocator: 64.0 MiB"),
    "use after free": ([], """
        import ctypes
        runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
        x = torch.zeros(64 << 20, device="cuda"); address = x.data_ptr(); del x; torch.cuda.empty_cache()
        print("copy gives", runtime.cudaMemcpy(ctypes.create_string_buffer(4), ctypes.c_void_p(address), ctypes.c_size_t(4), 2))""", 0, "copy gives 1"),
    "freed twice": ([], """
        import ctypes
        runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
        address = ctypes.c_void_p(); runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096))
        step(); print("free gives", runtime.cudaFree(address), runtime.cudaFree(address))""", 0, "free gives 0 1"),
    "tensors of two devices": ([], "net(torch.zeros(4, 64))", 1, "same device"),
    "a share of the device": ([], "torch.cuda.set_per_process_memory_fraction(0.001); torch.zeros(1 << 30, device='cuda')", 1, "it asks for 4.0 GiB while"),
    "streams and events": ([], """
        a, b, side = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
        a.record()
        with torch.cuda.stream(side): x = torch.zeros(1000, device="cuda"); x.record_stream(torch.cuda.default_stream())
        b.record(); torch.cuda.synchronize(); assert a.elapsed_time(b) > 0; step()""", 0, "FITS h200"),
    "a graph": ([], """
        x = torch.zeros(4, 64, device="cuda"); graph = torch.cuda.CUDAGraph()
        with torch.no_grad():
            net(x)
            with torch.cuda.graph(graph): net(x)
        graph.replay(); step()""", 0, "FITS h200"),
    "a pool of its own": ([], """
        with torch.cuda.use_mem_pool(torch.cuda.MemPool()): x = torch.zeros(1000, device="cuda")
        step()""", 0, "FITS h200"),
    "pinned memory": ([], "x = torch.zeros(1000, pin_memory=True).cuda(non_blocking=True); step()", 0, "FITS h200"),

    # what it does with torch
    "a wrong shape": ([], "net(torch.zeros(4, 65, device='cuda'))", 1, "shapes cannot be multiplied"),
    "backward twice": ([], "loss = net(torch.zeros(4, 64, device='cuda')).sum(); loss.backward(); loss.backward()", 1, "a second time"),
    "an exception in a hook of its own": ([], "net.register_forward_hook(lambda *_: 1 / 0)\nstep()", 1, "ZeroDivisionError"),
    "an exception in a module that is caught": ([], """
        try: net(torch.zeros(4, 65, device="cuda"))
        except RuntimeError: pass
        step()""", 0, "FITS h200"),
    "the history is ended by the program": ([], "step(); torch.cuda.memory._record_memory_history(None); step()", 0, "FITS h200"),
    "anomalies are looked for": ([], "with torch.autograd.detect_anomaly(): step()", 0, "FITS h200"),
    "a copy and a file of the model": ([], "import copy, io; copy.deepcopy(net); torch.save(net, io.BytesIO()); step()", 0, "FITS h200"),
    "LBFGS with a closure": ([], """
        lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)
        def closure():
            lbfgs.zero_grad(); loss = net(torch.zeros(4, 64, device="cuda")).sum(); loss.backward(); return loss
        lbfgs.step(closure)""", 0, "FITS h200"),
    "an optimizer step within backward": ([], """
        for p in net.parameters():
            one = torch.optim.SGD([p], lr=0.1); p.register_post_accumulate_grad_hook(lambda p, one=one: (one.step(), one.zero_grad()) and None)
        for _ in range(2): net(torch.zeros(4, 64, device="cuda")).sum().backward()""", 0, "FITS h200"),
    "steps without an optimizer": (["--steps", "1"], "for _ in range(3): net(torch.zeros(4, 64, device='cuda'))", 0, "FITS h200"),
    "the environment is cleared": ([], "os.environ.clear(); step()", 0, "FITS h200"),
    "output is closed": ([], "step(); sys.stdout.close(); os.close(2)", 0, "FITS h200"),
    "much output": ([], "step()\nfor _ in range(1000): print('x' * 5000)", 0, "FITS h200"),
    "a tracer of its own": ([], "sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None); step()", 0, "FITS h200"),
    "an even choice of classes": (["--assume", "even"], """
        chosen = torch.rand(64, 8, device='cuda').topk(2).indices
        mask = torch.nn.functional.one_hot(chosen, 8).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        counts = [len(torch.where(mask[expert[0]])[0]) for expert in hit]
        print('found', hit.flatten().tolist(), counts, len(chosen[chosen == 3]), torch.bincount(chosen.flatten(), minlength=8).tolist())
        step()""", 0, "found [0, 1, 2, 3, 4, 5, 6, 7] [16, 16, 16, 16, 16, 16, 16, 16] 16 [16, 16, 16, 16, 16, 16, 16, 16]"),
    "what a line reads is assumed": (["--assume", "program.py:11=1/4", "--assume", "program.py:12=7"], """
        x = torch.ones(40, device='cuda')
        print('found', len(x.nonzero()),
              x.sum().item())""", 0, "found 10 7.0"),
    "values that torch checks are allowed": ([], """
        normal = torch.distributions.Normal(net(torch.zeros(4, 64, device='cuda')), torch.zeros(8, device='cuda'))
        print('sampled', tuple(normal.sample().shape))""", 0, "sampled (4, 8)"),
    "an exception in an optimizer": ([], """
        class Mine(torch.optim.SGD):
            def step(self, closure=None): raise RuntimeError('in my step')
        optimizer = Mine(net.parameters()); step()""", 1, "in my step"),
    "PyTorch is imported twice": ([], """
        step()
        for name in [name for name in sys.modules if name.split('.')[0] == 'torch']: del sys.modules[name]
        try: import torch
        except BaseException as error: print('second:', type(error).__name__)""", 0, "FITS h200"),
    "functions of torch are replaced": ([], """
        backward, call, stats = torch.Tensor.backward, torch.nn.Module.__call__, torch.cuda.memory_stats
        torch.Tensor.backward = lambda tensor, *a, **k: backward(tensor, *a, **k)
        torch.nn.Module.__call__ = lambda module, *a, **k: call(module, *a, **k)
        torch.cuda.memory_stats = lambda *a: {}
        torch.optim.SGD.step = lambda self, closure=None: print('my step')
        step()""", 0, "my step"),
    "all functions of statistics are taken away": ([], "step(); torch.cuda.memory_stats = torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = None; step()", 0, "FITS h200"),
    "a graph that cannot be captured": ([], """
        x = torch.zeros(4, device='cuda')
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()): x.sum().item()
        except RuntimeError as error: print('refused:', 'captur' in str(error))
        step()""", 0, "refused: True"),
    "an event of another device": (["--gpus", "2"], """
        event = torch.cuda.Event(); event.record(torch.cuda.Stream(0))
        try: event.record(torch.cuda.Stream(1))
        except RuntimeError as error: print('refused:', str(error)[:40])
        step()""", 0, "refused: "),
    "two devices in turn": (["--gpus", "2"], "step(); y = torch.zeros(1 << 20, device='cuda:1'); torch.cuda.set_device(1); torch.cuda.synchronize()", 0, "FITS h200"),
    "a killed child that used the device": ([], """
        import subprocess
        child = subprocess.Popen([sys.executable, '-c', 'import os, torch; torch.zeros(9, device="cuda"); os.kill(os.getpid(), 9)'])
        print('child gave', child.wait()); step()""", 0, "child gave -9"),
    "ranks that do different things": (["--gpus", "2", "--timeout", "200"], ranks("""
        if rank == 0: dist.all_reduce(x)
        else: dist.broadcast(x[:10], src=0)
        torch.cuda.synchronize()"""), 0, "FITS h200"),
    "a rank that dies": (["--gpus", "2", "--timeout", "200"], ranks("""
        if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1000)"""), 1, "Signal 9 (SIGKILL)"),
    "a rank that fails": (["--gpus", "2", "--timeout", "200"], ranks("if rank == 1: raise ValueError('of rank 1')\ntime.sleep(1000)"), 1, "of rank 1"),
    "all ranks hang": (["--gpus", "2", "--timeout", "60"], ranks("time.sleep(1000)"), 2, "the program was ended after 60 s"),
    "more ranks than devices": (["--timeout", "200"], ranks("pass"), 1, "invalid device ordinal"),
    "sizes that follow from data": ([], "x = torch.ones(10, device='cuda'); print('found', len(x.nonzero())); step()", 0, "found 0"),
}

# name: (the words of the command, exit status, part of what is said)
COMMANDS = {
    "no such program": (["/no/such/program"], 2, "there is no such program"),
    "a file that cannot be run": (["/etc/passwd"], 2, "cannot be run"),
    "not Python": (["true"], 2, "the recorder was not loaded"),
    "isolated Python": ([PYTHON, "-I", "-c", "import torch"], 2, "the recorder was not loaded"),
    "a shell that runs Python": (["sh", "-c", f"{PYTHON} -c 'import torch; torch.zeros(9, device=\"cuda\")'"], 0, "FITS h200"),
    "a text of Python": ([PYTHON, "-c", "import torch; torch.zeros(9, device='cuda')"], 0, "FITS h200"),
}


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class ProgramsTest(programs.ProgramsTest):
    def test_programs(self):
        for name, (options, text, status, said) in PROGRAMS.items():
            self.check_program(name, options, text if isinstance(text, Whole) else TRAINING + textwrap.dedent(text), status, said, PYTHON)

    def test_commands(self):
        for name, (words, status, said) in COMMANDS.items():
            self.check(name, ["--", *words], status, said)


if __name__ == "__main__":
    unittest.main()
