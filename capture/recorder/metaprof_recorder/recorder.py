"""What of torch is observed, and how. Nothing that the program computes or sees is changed.

    module calls      global forward hooks
    backward          torch.autograd.backward and torch.autograd.grad, called through
    optimizer steps   global step hooks; construction: the constructors of torch.optim, called through
    zero_grad         of Optimizer and of Module, called through
    operators         a profiler of this thread (and of the threads that its backward uses), CPU activities only
    requests          the allocator's own history
    out of memory     the allocator's observer
    loading, saving   PyTorch's functions for them, called through (observers/entry_points.py)
"""
import functools
import os
import sys
import threading
from os import getpid  # as it is now: the program may replace it
from time import monotonic  # as it is now: the program may replace it

from metaprof_recorder import values
from metaprof_recorder.capture import capture
from metaprof_recorder.observers import entry_points
from metaprof_recorder.phases.activities import Activity
from metaprof_recorder.phases.statistics import Statistics
from metaprof_recorder.phases.training_step import FEWEST_CALLS, Phases, Segment
from metaprof_recorder.process import environment, process_exit
from metaprof_recorder.program import fixes, models, sources
from metaprof_recorder.program.modules import Modules
from metaprof_recorder.pytorch import devices, functorch_wrappers
from metaprof_recorder.ranks import object_collectives, peers, process_groups
from metaprof_recorder.requests import files, history
from metaprof_recorder.storages import peaks, tags
from metaprof_recorder.values import device_reads

DETAIL_STEPS = 3  # of so many steps every request is kept
GRACE_SECONDS = 10.0  # that a program has after its last step before it is ended


def _optimizers(kind):
    """A class of optimizers and those that are derived from it."""
    return {kind}.union(*(_optimizers(derived) for derived in kind.__subclasses__()))


def _address(parameter):
    """Of its elements, or of its own rank's part of them; 0: nowhere."""
    try:
        return getattr(parameter, "_local_tensor", parameter).data_ptr()
    except RuntimeError:  # nothing that stands in memory
        return 0


class Recorder:
    def __init__(self, torch, output):
        self.torch = torch
        self.output = output
        self.pid = getpid()
        self.steps = int(os.environ.get("METAPROF_RECORD_STEPS") or 0)
        self.detail_steps = int(os.environ.get("METAPROF_RECORD_DETAIL") or DETAIL_STEPS)
        self.keeps_log = bool(os.environ.get("METAPROF_RECORD_EVENTS"))
        self.statistics = Statistics(torch._C._cuda_memoryStats, torch._C._cuda_resetPeakMemoryStats)
        self.sources = sources.Sources(os.path.dirname(torch.__file__))
        self.wrappers = functorch_wrappers.Wrappers(torch)
        self.history = history.History(torch, self.wrappers)
        self.reads = device_reads.Reads(self.sources, torch._C._cuda_getDevice)
        self.capture = capture.Capture(torch, self.sources, self.wrappers) if os.environ.get("METAPROF_RECORD_PROGRAM") else None
        self.tags = tags.Tags(torch, self.capture)
        self.phases = Phases(self._measure, self._emit)
        self.peaks = peaks.Peaks(self)
        self.fixes = fixes.Fixes(torch, os.environ.get("METAPROF_RECORD_FIX") or "")
        self.rows = []
        self.named = False       # the last of them
        self.calls_line = ""    # that calls a module again and again without a backward
        self.cut = 0
        self.ready = False       # the device is in use
        self.early = []          # (thread, activity) that were begun before it is
        self.finished = False
        self.thread = None       # whose calls make the phases
        self.depth = 0           # of module calls in that thread
        self.in_backward = 0
        self.in_zero_grad = 0
        self.trained = set()     # addresses of what optimizers change
        self.modules = Modules()
        self.models = models.Models(functools.partial(tags.tensors_of, torch), functools.partial(output.write, "model"))
        self.local = threading.local()
        self.ending_lock = threading.Lock()
        self.out_of_memory = []

    def install(self):
        torch = self.torch
        self.fixes.install(_optimizers(torch.optim.Optimizer))
        module = torch.nn.modules.module
        hidden = {module.register_module_forward_pre_hook(self._enter_module).id,
                  module.register_module_forward_hook(self._leave_module, with_kwargs=True, always_call=True).id}
        self._hide(module, hidden)
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        register_optimizer_step_pre_hook(lambda *_: self._optimizer_begins())
        register_optimizer_step_post_hook(lambda optimizer, *_: self._optimizer_ends(optimizer))
        torch.autograd.backward = self._around_backward(torch.autograd.backward)
        torch.autograd.grad = self._around_backward(torch.autograd.grad)
        self._announce(torch.amp.GradScaler, "scale", "backward_begins")
        for place, name in ((torch.amp.GradScaler, "unscale_"), (torch.amp.GradScaler, "step"), (torch.nn.utils, "clip_grad_norm_"),
                            (torch.nn.utils, "clip_grad_value_")):
            self._announce(place, name, "gradients_are_prepared")
        torch.nn.Module.zero_grad = self._around_zero_grad(torch.nn.Module.zero_grad)
        for kind in _optimizers(torch.optim.Optimizer):
            if "__init__" in kind.__dict__:
                kind.__init__ = self._around_constructor(kind.__init__)
            if "zero_grad" in kind.__dict__:
                kind.zero_grad = self._around_zero_grad(kind.zero_grad)
        entry_points.Entries(torch, self._activity_begins, self._activity_ends, lambda trains: self._observe_activity("mode", trains),
                        lambda: self.sources.kind(sys._getframe(2).f_code.co_filename) == 0).install()
        torch._C._cuda_memoryStats = self.statistics.program_reads
        torch._C._cuda_resetPeakMemoryStats = self.statistics.program_resets
        self.history.give_way_to_program(self)
        self.wrappers.install()
        self.tags.graphs.install()
        if self.capture:
            self.capture.install()
        process_groups.represent(torch)
        object_collectives.install(torch, devices.emulator())
        torch.cuda._lazy_call(self._device_is_used)
        process_exit.watch(self)

    @staticmethod
    def _hide(module, hidden):
        """torch.compile asks whether there are global hooks, and warns of them: the program has none but its own."""
        def _has_any_global_hook():
            return any(hooks.keys() - hidden for name, hooks in vars(module).items() if name.startswith(("_global_forward", "_global_backward")) and isinstance(hooks, dict))
        if hasattr(module, "_has_any_global_hook"):
            module._has_any_global_hook = _has_any_global_hook

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

    # ---- the device

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
        self.phases.activities.go_on([activity for thread, activity in self.early if thread == self.thread])
        self.early = []
        for device in range(torch.cuda.device_count()):
            self.output.write("device", device=device, **devices.properties(torch, device))
        self.output.write("libraries", cudnn=devices.cudnn(torch))
        torch._C._cuda_attach_out_of_memory_observer(self._ran_out)
        self.reads.listen(devices.emulator(), self.thread)
        if self.reads.listening:
            self.history.sees_twice = values.begin(torch, devices.emulator(), self.reads, self.sources, os.environ)
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

    def used_devices(self):
        if not self.ready or getpid() != self.pid:
            return []
        torch = self.torch
        found = []
        for device in range(torch.cuda.device_count()):
            if self.statistics.now(device)["segment"]["peak"] or device == torch.cuda.current_device():
                found.append(device)
        return found

    def _ran_out(self, device, requested, device_total, device_free):
        now = self.statistics.now(device)
        line, function = self.sources.of_stack(self.thread)
        self.out_of_memory.append({
            "device": device, "requested": requested, "device_free": device_free, "line": line, "function": function,
            "phase": self.phases.name, "step": self.phases.step, "module": self._module_path(),
            "allocated_bytes": now["allocated_bytes"]["current"], "reserved_bytes": now["reserved_bytes"]["current"]})
        self.output.write("out_of_memory", **self.out_of_memory[-1])
        self.peaks.ran_out(device)
        self.phases.memory_ran_out()
        if self.capture:  # before it fails, the allocator gives back what it has cached; the call that failed is not in the program
            self.capture.step("empty_cache()")

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

    def _mine(self):
        """Whether an observation counts: of the recorded process, the thread that uses the device, not within backward."""
        if self.finished or getpid() != self.pid:
            return False
        return self.thread in (None, threading.get_ident()) and not self.in_backward

    def _follows(self):
        """Whether this thread is the one that trains, now that it calls backward: the one that used the device first only set up. Its
        phases are known from here on; its operators are not, for the profiler is the other thread's."""
        if self.finished or getpid() != self.pid or self.in_backward or not self.ready or self.phases.phase != "setup":
            return False
        self.thread = threading.get_ident()
        self.history.abandon()
        self.output.write("note", text="the program trains in another thread than the one that used the device first: its phases are known, its requests of memory are not")
        return True

    def _observe(self, what, *arguments):
        if self._mine():
            return getattr(self.phases, what)(*arguments)
        return None

    def _activity_begins(self, name, holds_steps):
        if self.ready or self.finished:
            return self._observe_activity("begins", name, holds_steps)
        activity = Activity(name, tentative=not holds_steps)
        self.early.append((threading.get_ident(), activity))
        return activity

    def _activity_ends(self, activity):
        if activity is not None:
            self.early = [begun for begun in self.early if begun[1] is not activity]
            self._observe_activity("ends", activity)

    def _observe_activity(self, what, *arguments):
        if self._mine() and self.ready:
            return getattr(self.phases.activities, what)(*arguments)
        return None

    def _is_trained(self, module):
        """Whether a module that is not in training mode holds what an optimizer changes."""
        try:
            return not module.training and any(_address(parameter) in self.trained for parameter in module.parameters())
        except Exception:  # noqa: BLE001 - a module may be anything
            return False

    def _note_trained(self, optimizer):
        for group in getattr(optimizer, "param_groups", ()):  # none, if its constructor raised an error
            self.trained.update(map(_address, group["params"]))
        self.trained.discard(0)

    def _steps_done(self):
        return self.phases.step + self.phases.stepped

    def _after_step(self):
        """Ends the history after the steps of which it is kept, and the program after its last."""
        if self.history.running and self._steps_done() > self.detail_steps:
            self.write_events()
            self.peaks.watch()
        if self.steps and self.phases.step >= self.steps:
            process_exit.end_program(self, 0)

    # ---- what is observed

    def _stack(self):
        if not hasattr(self.local, "modules"):
            self.local.modules = []
        return self.local.modules

    def _module_path(self):
        stack = self._stack()
        return stack[-1][0] if stack else ""

    def _enter_module(self, module, arguments):
        if self.finished or self.torch.compiler.is_compiling():
            return
        stack = self._stack()
        if not stack:
            if self._mine():
                self.fixes.enter(module)
            # Parametrizations call modules when they are made, which is often before anything is on a device.
            if self._mine() and (self.phases.phase != "setup" or self.torch.cuda.is_initialized()):
                self.history.resume()
                grad = self.torch.is_grad_enabled()
                new_step = self.phases.forward_begins(grad, type(module).__name__, not grad and self._is_trained(module))
                if self.phases.calls == FEWEST_CALLS:
                    self.calls_line = self.sources.of_stack()[0]
                if new_step or not self.phases._trains:
                    self._after_step()
            path = self.modules.name(module)
            if self._mine() and self.history.running and not self.torch.jit.is_tracing():
                self.tags.model(module, path, self.cut)
                self.tags.inputs(arguments, self.cut)
        path = self.modules.path(module)
        if path is None:
            path = stack[-1][0] if stack else ""
        stack.append((path, self.history.enter(path)))
        if self.capture:
            self.capture.enter(path)

    def _leave_module(self, module, arguments, *rest):
        """`rest`: named arguments and the result; the latter alone where the module has raised an error."""
        stack = self._stack()
        if self.torch.compiler.is_compiling() or not stack:
            return
        self.history.leave(stack.pop()[1])
        if self.capture:
            self.capture.leave(arguments, rest[0] if len(rest) == 2 else {})
        if not stack:
            self.fixes.leave()
            with self.peaks.given(f"what {type(module).__name__} returns", rest[-1] if len(rest) == 2 else None):
                self._observe("forward_ends", 0 if self.torch.is_grad_enabled() else self._length_of(arguments, rest))
            if self.ready and self._mine() and not self.torch.jit.is_tracing():  # a tracer's sizes are tensors
                self.models.called(module, arguments, rest[0] if len(rest) == 2 else {})
            if len(rest) == 2 and self._mine() and self.history.running and not self.phases._trains and not self.torch.jit.is_tracing():
                self.tags.results(rest[1], self.cut)

    def _length_of(self, arguments, rest):
        """Of the sequences of whole numbers, [batch, length], that a module was called with; 0: there are none."""
        for value in (*arguments, *(rest[0].values() if len(rest) == 2 else ())):
            if isinstance(value, self.torch.Tensor) and value.dtype == self.torch.int64 and value.dim() == 2:
                return int(value.shape[1])
        return 0

    def _is_traced(self):
        """Whether a compiler calls, with tensors that are not the program's."""
        torch = self.torch
        return torch.compiler.is_compiling() or torch._guards.TracingContext.try_get() is not None or \
            torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None

    def _around_backward(self, original):
        torch = self.torch

        @functools.wraps(original)
        def call(*arguments, **options):
            counts = original.__name__ == "backward" or not options.get("create_graph")
            if not counts or self._is_traced() or not (self._mine() or self._follows()):
                return original(*arguments, **options)
            self.history.resume()
            with self.peaks.given("what backward is called of", arguments[0] if arguments else options.get("tensors", options.get("outputs"))):
                self.phases.backward_begins()
            self.in_backward += 1
            failures = len(self.out_of_memory)
            try:
                return original(*arguments, **options)
            finally:
                self.in_backward -= 1
                if len(self.out_of_memory) == failures:
                    self.phases.backward_ends()
                if self.history.running:
                    self.tags.gradients(self.cut)
        return call

    def _announce(self, place, name, what):
        """Calls of a function are observed before they are made: what prepares the backward or the optimizer counts as its beginning."""
        original = getattr(place, name)

        @functools.wraps(original)
        def call(*arguments, **options):
            self._observe(what)
            return original(*arguments, **options)
        setattr(place, name, call)

    def _optimizer_begins(self):
        if self._mine():
            self.history.resume()
            self.phases.optimizer_begins()

    def _optimizer_ends(self, optimizer):
        if self.in_backward:
            self.phases.stepped = True
            return
        if devices.emulator() is not None:
            process_groups.wait_for_ranks()
        self._observe("optimizer_ends")
        if self._steps_done() <= self.detail_steps:
            self._note_trained(optimizer)
        if self.history.running:
            self.tags.optimizer(optimizer, self.cut)
        if self.steps and self._steps_done() >= self.steps:
            process_exit.end_soon(self, GRACE_SECONDS)

    def _around_constructor(self, original):
        @functools.wraps(original)
        def call(optimizer, *arguments, **options):
            if getattr(self.local, "constructing", False) or not self._mine():
                return original(optimizer, *arguments, **options)
            self.local.constructing = True
            self.phases.constructor_begins()
            if self.capture:
                self.capture.optimizers.begin()
            try:
                return original(optimizer, *arguments, **options)
            finally:
                self.local.constructing = False
                if self.capture:
                    self.capture.optimizers.end(optimizer, "made")
                self.phases.constructor_ends()
                self._note_trained(optimizer)
        return call

    def _around_zero_grad(self, original):
        @functools.wraps(original)
        def call(*arguments, **options):
            if self.in_zero_grad or not self._mine():
                return original(*arguments, **options)
            self.in_zero_grad += 1
            self.phases.zero_grad_begins()
            try:
                return original(*arguments, **options)
            finally:
                self.in_zero_grad -= 1
                self.phases.zero_grad_ends()
        return call

    # ---- the end

    def write_events(self):
        """Writes what the history has, and ends it."""
        before = monotonic()
        if self.capture:
            self.capture.end()
        found_all = self.history.end()
        if found_all is None:
            return
        self.reads.name(found_all.items)
        if self.capture:
            self._write_program()
        for device, found in found_all.by_device():
            files.write(self, found, device)
        self.output.write("environment", environment=environment.values_of(environment.MEMORY))
        self.output.write("modules", types=self.modules.types)
        self.output.write("detail", took=round(monotonic() - before, 3))

    def _write_program(self):
        if self.capture.refused:
            self.output.write("note", text=f"the program is not saved: {self.capture.refused}")
            return
        self.output.write("saving")
        path = self.output.path("program", ".mp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.capture.text(self.rows, self.modules.types))
        self.output.write("program", file=os.path.basename(path))

    def _measure_outside(self):
        """What is taken from the devices beyond what the allocator has: libraries' own memory, and on a real device the context."""
        for device in self.used_devices():
            taken = devices.taken(self.torch, device)
            if taken is not None:
                self.output.write("outside", device=device, bytes=max(0, taken - self.statistics.now(device)["reserved_bytes"]["current"]))

    def finish(self, whole):
        """Writes the last rows. Called once, however the program ends. `whole`: by itself, so that what came last counts."""
        if self.finished or getpid() != self.pid:
            return
        if self.ready:
            self.reads.stop()
            try:
                if not self.steps or self.phases.step < self.steps:  # else the forward after the last step has begun
                    self.phases.finish(whole)
                self._measure_outside()
                self.peaks.end()
            except Exception as error:  # noqa: BLE001 - a profiler that is not ended would crash the process
                self.output.problem("events", f"the last phase could not be measured: {error!r}")
            try:
                self.write_events()
            except Exception as error:  # noqa: BLE001 - the phases are worth more than what is missing then
                self.output.problem("events", f"the requests of memory could not be read: {error!r}")
            self.output.write("fixes", names=self.fixes.found)
            for device, operator, line, count, source in self.reads.rows():
                self.output.write("data_read", device=device, op=operator, line=line, count=count, source=source)
        self.finished = True
        peers.wait(self.output)
