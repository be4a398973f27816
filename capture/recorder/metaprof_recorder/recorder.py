"""Joins the parts. Nothing that the program computes or sees is changed.

    observers/   calls of modules and calls that train, activities, memory that runs out
    requests/    a profiler of this thread (and of the threads that its backward uses), CPU activities only, and the allocator's own history
    capture/     the program's calls, if they are asked for
    results.py   what is written when the history ends, and when the program does
"""
import functools
import os
import threading
from os import getpid  # as it is now: the program may replace it

from metaprof_recorder import results, values
from metaprof_recorder.capture import capture
from metaprof_recorder.observers.activities import ObservedActivities
from metaprof_recorder.observers.module_calls import ModuleCalls
from metaprof_recorder.observers.out_of_memory import OutOfMemory
from metaprof_recorder.observers.training_calls import TrainingCalls, with_derived
from metaprof_recorder.phases.statistics import Statistics
from metaprof_recorder.phases.training_step import Phases, Segment
from metaprof_recorder.process import process_exit
from metaprof_recorder.process.import_hook import after_import
from metaprof_recorder.program import fixes, models, sources
from metaprof_recorder.program.model_names import ModelNames
from metaprof_recorder.program.modules import Modules
from metaprof_recorder.program.trained import Trained
from metaprof_recorder.pytorch import devices, functorch_wrappers
from metaprof_recorder.ranks import object_collectives, peers, process_groups, symmetric_memory
from metaprof_recorder.requests import history
from metaprof_recorder.storages import peaks, tags
from metaprof_recorder.values import device_reads

DETAIL_STEPS = 3  # of so many steps every request is kept


class Recorder:
    def __init__(self, torch, output):
        self.torch = torch
        self.output = output
        self.pid = getpid()
        self.steps = int(os.environ.get("METAPROF_RECORD_STEPS") or 0)
        self.detail_steps = int(os.environ.get("METAPROF_RECORD_DETAIL") or DETAIL_STEPS)
        self.keeps_log = bool(os.environ.get("METAPROF_RECORD_EVENTS"))
        self.ready = False       # the device is in use
        self.finished = False
        self.thread = None       # whose calls make the phases
        self.in_backward = 0
        self.cut = 0
        self.rows = []           # (phase, step, first cut, last cut)
        self.named = False       # the last of them
        self.calls_line = ""     # that calls a module again and again without a backward
        self.ending_lock = threading.Lock()
        self.trained = Trained()
        self._make_parts()

    def _make_parts(self):
        torch = self.torch
        self.statistics = Statistics(torch._C._cuda_memoryStats, torch._C._cuda_resetPeakMemoryStats)
        self.sources = sources.Sources(os.path.dirname(torch.__file__))
        self.modules = Modules(ModelNames(torch, self.sources))
        self.wrappers = functorch_wrappers.Wrappers(torch)
        self.history = history.History(torch, self.wrappers)
        self.reads = device_reads.Reads(self.sources, torch._C._cuda_getDevice)
        self.capture = capture.Capture(torch, self.sources, self.wrappers) if os.environ.get("METAPROF_RECORD_PROGRAM") else None
        self.tags = tags.Tags(torch, self.capture)
        self.phases = Phases(self._measure, self._emit)
        self.peaks = peaks.Peaks(self)
        tensors_in = functools.partial(tags.tensors_of, torch)
        self.fixes = fixes.Fixes(torch, os.environ.get("METAPROF_RECORD_FIX") or "", tensors_in, lambda: self.sources.of_stack()[0])
        self.models = models.Models(tensors_in, functools.partial(self.output.write, "model"))
        self.module_calls = ModuleCalls(self)
        self.training_calls = TrainingCalls(self)
        self.activities = ObservedActivities(self)
        self.out_of_memory = OutOfMemory(self, self.module_calls.path)

    def install(self):
        torch = self.torch
        self.fixes.install(with_derived(torch.optim.Optimizer))
        self.module_calls.install()
        self.training_calls.install()
        self.activities.install()
        torch._C._cuda_memoryStats = self.statistics.program_reads
        torch._C._cuda_resetPeakMemoryStats = self.statistics.program_resets
        self.history.give_way_to_program(self)
        self.wrappers.install()
        self.tags.graphs.install()
        if self.capture:
            self.capture.install()
        process_groups.represent(torch)
        if process_groups.alone():
            after_import("torch.distributed._symmetric_memory", lambda module: symmetric_memory.Memories(torch, module).represent())
        object_collectives.install(torch, devices.emulator())
        torch.cuda._lazy_call(self._device_is_used)
        process_exit.watch(self)

    # ---- the process and its device

    def forked(self):
        """In a forked child: it is recorded as a process of its own, unless the device was in use before (CUDA does not outlive that)."""
        os._exit = self.leave
        if self.history.begun:
            process_exit.skip_destructors()
        if self.ready or self.finished:
            self.finished = True
            return
        self.pid = getpid()
        self.ending_lock = threading.Lock()
        self.output.header()
        self.output.write("torch", version=self.torch.__version__, cuda=self.torch.version.cuda)
        process_exit.watch_exit(self)

    def _device_is_used(self):
        """Called at the end of the initialisation of CUDA."""
        torch = self.torch
        if getpid() != self.pid or self.finished:
            return
        problem = self._problem_with_allocator()
        if problem:
            self.output.problem("allocator", problem)
            self.finished = True  # the program goes on
            return
        self.ready = True
        self.thread = threading.get_ident()
        self.activities.device_is_used()
        for device in range(torch.cuda.device_count()):
            self.output.write("device", device=device, **devices.properties(torch, device))
        self.output.write("libraries", cudnn=devices.cudnn(torch))
        self.out_of_memory.install()
        self.reads.listen(devices.emulator(), self.thread)
        if self.reads.listening:
            self.history.sees_twice = values.begin(torch, devices.emulator(), self.reads, self.sources, os.environ, self._before_call)
        self.history.begin()
        if self.capture:
            self.capture.begin()

    def _problem_with_allocator(self):
        """Why what the program takes cannot be recorded, as a sentence; None if it can."""
        backend = self.torch.cuda.memory.get_allocator_backend()
        if backend != "native":
            return f"the program's allocator is {backend}: only PyTorch's caching allocator can be recorded"
        if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING"):
            return "PYTORCH_NO_CUDA_MEMORY_CACHING is set: requests that do not go to the caching allocator cannot be recorded"
        return None

    def _before_call(self):
        """Of an operator. Before the first forward nothing else tells that more is alive than before."""
        if self.phases.phase == "setup" and self.mine() and self.peaks.device_grew():
            self.phases.setup_goes_on()

    def used_devices(self):
        if not self.ready or getpid() != self.pid:
            return []
        torch = self.torch
        found = []
        for device in range(torch.cuda.device_count()):
            if self.statistics.now(device)["segment"]["peak"] or device == torch.cuda.current_device():
                found.append(device)
        return found

    # ---- which observations count

    def mine(self):
        """Whether an observation counts: of the recorded process, the thread that uses the device, not within backward."""
        if self.finished or getpid() != self.pid:
            return False
        return self.thread in (None, threading.get_ident()) and not self.in_backward

    def follows(self):
        """Whether this thread is the one that trains, now that it calls backward: the one that used the device first only set up. Its
        phases are known from here on; its operators are not, for the profiler is the other thread's."""
        if self.finished or getpid() != self.pid or self.in_backward or not self.ready or self.phases.phase != "setup":
            return False
        self.thread = threading.get_ident()
        self.history.abandon()
        self.output.write("note", text="the program trains in another thread than the one that used the device first: its phases are known, its requests of memory are not")
        return True

    def observe(self, what, *arguments):
        if self.mine():
            return getattr(self.phases, what)(*arguments)
        return None

    # ---- phases

    def _measure(self):
        self.cut += 1
        self.history.mark(self.cut)
        if self.capture:
            self.capture.cut(self.cut)
        rows = {device: self.statistics.of_phase(device) for device in self.used_devices()}
        self.peaks.measured(self.cut, rows)
        return Segment(self.cut, rows)

    def _emit(self, row):
        if not row.devices:
            return
        last = self.rows[-1] if self.rows else None
        if last and last[:2] == (row.phase, row.step) and (row.name != row.phase or self.named):
            self.rows[-1] = (*last[:3], row.last)  # the steps that are repeated know no names
        else:
            self.rows.append((row.phase, row.step, row.first, row.last))
        self.named = row.name != row.phase
        for device, (module, calls, left) in row.growth.items():
            row.devices[device]["calls"] = {"module": module, "count": calls, "growth": left, "line": self.calls_line}
        within = {"within": row.phase} if self.named else {}
        self.output.write("phase", phase=row.name, step=row.step, devices=row.devices, **within)

    # ---- steps, and the end

    def steps_done(self):
        return self.phases.step + self.phases.stepped

    def after_step(self):
        """Ends the history after the steps of which it is kept, and the program after its last."""
        if self.history.running and self.steps_done() > self.detail_steps:
            results.write_requests(self)
            self.peaks.watch()
        if self.steps and self.phases.step >= self.steps:
            process_exit.end_program(self, 0)

    def finish(self, whole):
        """Writes the last rows. Called once, however the program ends. `whole`: by itself, so that what came last counts."""
        if self.finished or getpid() != self.pid:
            return
        if self.ready:
            results.write_last(self, whole)
        self.finished = True
        peers.wait(self.output)
