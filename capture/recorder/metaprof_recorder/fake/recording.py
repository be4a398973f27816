"""A function's calls on a fake device as a program."""
import contextlib
import os
import threading

from metaprof_recorder.capture import capture
from metaprof_recorder.fake import cuda, guards
from metaprof_recorder.fake.device import FakeDevice
from metaprof_recorder.fake.steps import Steps
from metaprof_recorder.fake.values import Refused, Unread  # noqa: F401 - for who records
from metaprof_recorder.program import sources
from metaprof_recorder.program.model_names import ModelNames
from metaprof_recorder.program.modules import Modules
from metaprof_recorder.pytorch import functorch_wrappers
from metaprof_recorder.pytorch.patches import Patches
from metaprof_recorder.storages import tags

LOCK = threading.RLock()  # functions of torch are replaced meanwhile


def _is_of_package(frame):
    """Who calls the function that is recorded, and what has called that."""
    return frame.f_globals.get("__name__", "").partition(".")[0] == "metaprof"


class Recording:
    """What is called while it is entered is captured, on the thread that entered it."""

    def __init__(self, torch, description, tried=None):
        """`description`: of the device (cuda.py). `tried`: 0 or 1, which number is told where nothing tells one; None: `Unread` is raised there."""
        self._torch, self._description = torch, description
        own = sources.Sources(os.path.dirname(torch.__file__))
        self.device = FakeDevice(torch, own, tried)
        self.capture = capture.Capture(torch, own, functorch_wrappers.Wrappers(torch), self.device)
        self.device.capture = self.capture
        self._tags = tags.Tags(torch, self.capture, places=False)
        self._modules = Modules(ModelNames(torch, own, _is_of_package))
        self._patches = Patches()
        self._stack = []   # paths of the modules that are at work
        self._thread = None
        self._cut = 0
        self._rows = []    # (phase, step, first cut, last cut)
        self._phase = None
        self._steps = None  # who finds the phases, if they are not told

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(LOCK)
            stack.callback(self._patches.undo)
            optimizes = self._torch._C._get_graph_executor_optimize(False)  # whose kernels would be compiled by a driver
            stack.callback(self._torch._C._get_graph_executor_optimize, optimizes)
            stack.enter_context(guards.without_driver(self._torch))
            stack.enter_context(self.device)
            self._install()
            stack.callback(self.capture.uninstall)
            self.capture.install()
            stack.callback(self.capture.end)
            self.capture.begin()
            self._leave = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._leave.close()

    def _install(self):
        self._thread = threading.get_ident()
        cuda.install(self._torch, self._patches, self._description, self.device.is_here)
        module = self._torch.nn.modules.module
        self._patches.later(module.register_module_forward_pre_hook(self._enter_module).remove)
        self._patches.later(module.register_module_forward_hook(self._leave_module, with_kwargs=True, always_call=True).remove)

    # ---- phases

    def phase(self, name, step):
        """What follows is of this phase."""
        before = self._phase
        self._phase = name, step
        if before is not None and before[0] is not None:
            cut = self._end_stretch()
            self._rows.append((*before, cut, cut))

    def observe(self):
        """Phases are those of what is called from here on (steps.py), until the function that is returned is called."""
        self.phase(None, 0)
        self._steps = Steps(self._torch, self._patches, self._end_stretch, lambda: len(self.capture.program.lines), self.device.is_here)
        self._rows = self._steps.rows
        self._steps.install()
        return self._steps.finish

    def _end_stretch(self):
        self._cut += 1
        self.capture.cut(self._cut)
        return self._cut

    # ---- what tensors are for, beside those of modules and their positional arguments

    def name_inputs(self, values):
        """What modules are given by keyword."""
        self._tags.inputs(values, self._cut)

    def name_state(self, optimizer):
        """What an optimizer has kept before its first step."""
        self._tags.optimizer(optimizer, self._cut)

    # ---- modules

    def _enter_module(self, module, arguments):
        if threading.get_ident() != self._thread or self._torch.compiler.is_compiling():
            return
        if not self._stack:
            if self._steps:
                self._steps.forward_begins()
            path = self._modules.name(module)
            self._tags.model(module, path, self._cut)
            self._tags.inputs(arguments, self._cut)
        path = self._modules.path(module)
        if path is None:
            path = self._stack[-1] if self._stack else ""
        if isinstance(module, self._torch.jit.ScriptModule):
            self.capture.warn(f"{path or 'the model'}: a scripted module is captured as the operators that its code calls; PyTorch's executor fuses some of them")
        self._stack.append(path)
        self.capture.enter(path)

    def _leave_module(self, module, arguments, *rest):
        if threading.get_ident() != self._thread or self._torch.compiler.is_compiling() or not self._stack:
            return
        self._stack.pop()
        self.capture.leave(arguments, rest[0] if len(rest) == 2 else {})
        if not self._stack and self._steps:
            self._steps.forward_ends()

    def text(self):
        return self.capture.text(self._rows, self._modules.types)
