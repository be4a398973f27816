"""The program as it calls PyTorch: every call before autocast and autograd, composites whole, and when each tensor goes.

Calls of operators (operators.py) are seen above autocast and autograd (dispatch.py): a kernel of ours writes the call down and goes on
with the dispatcher switched off. What a backward calls is not written down: it is one call of the program, and follows from the calls
before it. A tensor has a name as long as its Python object lives (values.py).

What no operator does is written as calls of `step::` (docs/reference/program.md): phases, backward, modes, `.data`, `.grad`.
"""
import threading

from metaprof_recorder.capture import distributed, observers
from metaprof_recorder.capture.backward import Backward
from metaprof_recorder.capture.calls import Calls
from metaprof_recorder.capture.device import Cuda
from metaprof_recorder.capture.dispatch import Dispatch
from metaprof_recorder.capture.distributed import awaited
from metaprof_recorder.capture.dtypes import DTypes
from metaprof_recorder.capture.functions import Functions, tensors_in
from metaprof_recorder.capture.modes import Modes
from metaprof_recorder.capture.nested import Nested
from metaprof_recorder.capture.nodes import Nodes
from metaprof_recorder.capture.operators import Operators
from metaprof_recorder.capture.optimizers import Optimizers
from metaprof_recorder.capture.refcounts import counts_tell
from metaprof_recorder.capture.regions import Regions, keep_unused
from metaprof_recorder.capture.tensors import Tensors
from metaprof_recorder.capture.transforms import Transforms
from metaprof_recorder.capture.unseen import Unseen
from metaprof_recorder.capture.values import Values
from metaprof_recorder.process import environment
from metaprof_recorder.pytorch.patches import Patches
from metaprof_recorder.text import program_lines
from metaprof_recorder.text.arguments import Constants, word, words
from metaprof_recorder.text.places import Places


class Capture:
    """`begin` and `end` once each; the rest does nothing between."""

    def __init__(self, torch, sources, wrappers, device=None):
        self.torch = torch
        self.device = device or Cuda(torch)
        self.patches = Patches()
        self.running = False
        self.paused = 0          # within a backward and the like: calls are not the program's own
        self.thread = None       # whose calls are the program's
        self.program = self.now = Calls(True, 0)  # the latter: to which calls are added
        self.refused = None      # why there is no program
        self.watches_compiler = False
        self._warnings = []
        self._definitions = []   # lines that say what modules and source lines are
        self._named = set()      # values that have been told what they are for
        self._mode, self._tracing = torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.PROXY

        self.constants = Constants(torch, self.device.current)
        self.places = Places(self._definitions.append, sources)
        self.dtypes = DTypes(torch, sources.kind)
        self.unseen = Unseen(self.device)
        self.modes = Modes(self)
        self.tensors = Tensors(torch, self.device)
        self.values = Values(self, self.tensors)
        self.operators = Operators(self)
        self.dispatch = Dispatch(self, self.operators.kernel)
        self.transforms = Transforms(torch, wrappers)
        self.functions = Functions(self)
        self.backward = Backward(self)
        self.nodes = Nodes(self)
        self.regions = Regions(self)
        self.optimizers = Optimizers(self)
        self.nested = Nested(self, torch)

    # ---- beginning and end

    def install(self):
        """To be called before the program has taken functions of torch to itself."""
        observers.install(self)
        self.optimizers.install()
        distributed.install(self)
        self.functions.install()
        self.backward.install()
        self.nodes.install()
        self.nested.install()

    def uninstall(self):
        """Functions of torch are its own again."""
        self.patches.undo()

    def begin(self):
        if self.running or self.refused:
            return
        self.values.counts_tell = counts_tell(self.torch)
        self.thread = threading.get_ident()
        self.running = True
        self.unseen.begin()
        self.dispatch.begin()

    def end(self):
        if not self.running:
            return
        self.running = False
        self.unseen.end()
        self.dispatch.end()

    def refuse(self, reason):
        """The program does what cannot be written down; it goes on unseen."""
        if self.refused is None:
            self.refused = reason
            self.end()

    def warn(self, text):
        """What a reader of the program should know."""
        if text not in self._warnings:
            self._warnings.append(text)

    # ---- whether calls are written down

    def active(self):
        return self.running and not self.paused and threading.get_ident() == self.thread and self.transforms.level() is None and not self.is_traced()

    def is_traced(self):
        """Whether a function is being looked at (make_fx) instead of called."""
        return self._mode(self._tracing) is not None

    def concerns(self, tensor):
        """Whether what is done to a tensor without an operator is written down."""
        return self.active() and (tensor.is_cuda or id(tensor) in self.now.names)

    # ---- lines

    def call(self, text):
        """Writes a call, which is the last one so far that takes what has been used for it."""
        for name in self.now.used:
            name.last = len(self.now.calls)
        self.now.used.clear()
        self.add(text)

    def add(self, text):
        """Writes a call that stands before the one that is being prepared."""
        self.now.calls.append(len(self.now.lines))
        self.now.lines.append(text)

    def step(self, text):
        """A call of `step::`, if the program is being captured and the thread is its own."""
        if self.active():
            self.values.drop_held()
            self.call(f"step::{text}")

    def new_calls(self):
        return Calls(self.torch.is_grad_enabled(), self.modes.stream())

    # ---- what the recorder observes

    def cut(self, number):
        if self.running:
            self.values.drop_held()
            program = self.program
            program.calls.append(len(program.lines))  # what dies now goes in the next phase
            program.lines.append(number)

    def enter(self, path):
        if self.active():
            number, calls, _ = self.now.modules[-1]
            count = calls.get(path, 0)
            calls[path] = count + 1
            self.now.modules.append((self.places.scope(number, path, count), {}, len(self.now.calls)))

    def leave(self, *given):
        """`given`: the arguments of the module's call."""
        if self.active() and len(self.now.modules) > 1:
            keep_unused(self, tensors_in(self.tensors.kind, given), self.now.modules[-1][2])
            self.now.modules.pop()
            if len(self.now.modules) == 1:
                self.now.modules[0][1].clear()

    def name(self, kind, tensor, name="", persistent=True):
        """What a tensor is for; whether a buffer is part of the model's state."""
        if not self.active() or not isinstance(tensor, self.tensors.kind) or not (self.tensors.is_on_device(tensor) or id(tensor) in self.now.names):
            return
        number = self.values.use(tensor)
        if number not in self._named:
            self._named.add(number)
            if kind in ("parameter", "buffer"):  # its module holds it
                self.now.held.forget(self.now.names[id(awaited(tensor))])
            self.call(f"step::name({words(kind)}, {words(name)}, %{number}{'' if persistent else ', False'})")

    # ---- the text

    def text(self, rows, types):
        """`rows`: (phase, step, first cut, last cut) of the phases; `types`: of modules, by path."""
        lines = ["metaprof program 1", f"captured torch {self.torch.__version__}"]
        # As it is now: libraries read it when they are used first, which may be after the import.
        lines += [f"environment {name} {words(value)}" for name, value in environment.values_of(environment.MEMORY).items()]
        lines += [f"warning {words(text)}" for text in self._warnings + self.unseen.warnings()]
        lines += [f"module {word(path)} {word(kind)}" for path, kind in types.items()]
        lines += self._definitions
        return program_lines.text(self.program, rows, lines, self.regions.values_before, self.functions)
