"""The program as it calls PyTorch: every call before autocast and autograd, composites whole, and when each tensor goes.

Calls are seen on the PreDispatch key, above autocast and autograd: the Python dispatcher asks each operator for its kernel there, and
is given one that writes the call down and goes on with the dispatcher switched off. What a backward calls is not written down: it is
one call of the program, and follows from the calls before it.

A tensor has a name as long as its Python object lives; `drop` is written behind the last call before it died. An object that only
autograd holds lives on: counts of references tell when the program's own last handle went (refcounts.py). Where they cannot (PyTorch before
2.10, and tensors without gradients), it dies within a backward, and is dropped behind the last call that used it.

What no operator does is written as calls of `step::` (docs/reference/program.md): phases, backward, modes, `.data`, `.grad`.
"""
import contextlib
import sys
import threading

from metaprof_recorder.capture import distributed, observers
from metaprof_recorder.capture.backward import Backward
from metaprof_recorder.capture.calls import Calls, Name, caller
from metaprof_recorder.capture.device import Cuda
from metaprof_recorder.capture.distributed import Redistributed, awaited, inner
from metaprof_recorder.capture.dtypes import DTypes
from metaprof_recorder.capture.functions import Functions, tensors_in
from metaprof_recorder.capture.lists import Lists
from metaprof_recorder.capture.nested import Nested, is_nested
from metaprof_recorder.capture.optimizers import Optimizers
from metaprof_recorder.capture.refcounts import counts_tell
from metaprof_recorder.capture.regions import Regions, keep_unused
from metaprof_recorder.capture.signature import Signature
from metaprof_recorder.capture.sparse import SparseTensors
from metaprof_recorder.capture.storages import Storages
from metaprof_recorder.capture.transforms import Transforms
from metaprof_recorder.capture.unseen import Unseen
from metaprof_recorder.process import environment
from metaprof_recorder.pytorch.patches import Patches
from metaprof_recorder.text import program_lines
from metaprof_recorder.text.arguments import Constants, Facts, real, word, words
from metaprof_recorder.text.places import Places


class Capture:
    """`begin` and `end` once each; the rest does nothing between."""

    def __init__(self, torch, sources, wrappers, device=None):
        self.torch = torch
        self.device = device or Cuda(torch)
        self.patches = Patches()
        self.running = False
        self.paused = 0          # within a backward and the like: calls are not the program's own
        self.thread = None
        self._tensor = torch.Tensor
        self._dtype = torch.dtype
        self._given_dtype = None  # the dtype that the call which is being prepared is given
        self._plain = (torch.Tensor, torch.nn.Parameter, *self.device.kinds)
        self._kinds = set(self._plain)  # classes of tensors that have been seen
        self._constants = Constants(torch, self.device.current)
        self._facts = Facts(torch.strided)
        self._sparse = SparseTensors(self, torch)
        self._storages = Storages(self)
        self._definitions = []   # lines that say what modules and source lines are
        self._places = Places(self._definitions.append, sources)
        self.dtypes = DTypes(torch, sources.kind)
        self._program = self._now = Calls(True, 0)  # the latter: to which calls are added
        self._values = 0
        self.functions = Functions(self)
        self.backward = Backward(self)
        self.regions = Regions(self)
        self.unseen = Unseen(self.device)
        self._handled = []       # operators that have a kernel of ours
        self._guard = None
        self._named = set()      # values that have been told what they are for
        self.redistributed = None  # distributed.Redistributed of the call that runs
        self._lists = Lists(self)
        self.optimizers = Optimizers(self)
        self._streams = {0: 0}   # number that PyTorch gives a stream, or what is captured on it -> ours
        self.captures = False    # a CUDA graph is being captured, whose memory is of a pool of its own
        self._warnings = []
        self.refused = None      # why there is no program
        self.watches_compiler = False
        self._counts_tell = False
        self.off = torch._C._DisablePythonDispatcher  # within it operators are called, and not written down
        self._mode, self._tracing = torch._C._get_dispatch_mode, torch._C._TorchDispatchModeKey.PROXY
        self.transforms = Transforms(torch, wrappers)
        self.transform = self.transforms.level
        self.nested = Nested(self, torch)

    # ---- beginning and end

    def install(self):
        """To be called before the program has taken functions of torch to itself."""
        observers.install(self)
        self.optimizers.install()
        distributed.install(self)
        self.functions.install()
        self.backward.install()
        self.nested.install()

    def uninstall(self):
        """Functions of torch are its own again."""
        self.patches.undo()

    def begin(self):
        if self.running or self.refused:
            return
        torch = self.torch
        self._counts_tell = counts_tell(torch)
        self.thread = threading.get_ident()
        self.running = True
        self.unseen.begin()
        self._key = torch._C.DispatchKey.PreDispatch
        self._find = torch._ops.OpOverload._get_dispatch
        torch._ops.OpOverload._get_dispatch = lambda overload, key: self._get_dispatch(overload, key)
        torch._C._dispatch_tls_set_dispatch_key_included(self._key, True)
        self._guard = torch._C._EnablePythonDispatcher()

    def end(self):
        if not self.running:
            return
        self.running = False
        self.unseen.end()
        torch = self.torch
        if self.thread == threading.get_ident():
            torch._C._dispatch_tls_set_dispatch_key_included(self._key, False)
            self._guard = None
        torch._ops.OpOverload._get_dispatch = self._find
        for overload in self._handled:
            overload._dispatch_cache.pop(self._key, None)

    def sleep(self):
        """Operators have their own kernels again, until the function that is returned is called."""
        torch, thread = self.torch, threading.get_ident()
        if thread != self.thread:
            return lambda: None
        torch._C._dispatch_tls_set_dispatch_key_included(self._key, False)
        off = self.off()
        off.__enter__()
        torch._ops.OpOverload._get_dispatch = self._find
        for overload in self._handled:
            overload._dispatch_cache.pop(self._key, None)
        self._handled.clear()

        def wake():
            off.__exit__(None, None, None)
            if self.running:
                torch._ops.OpOverload._get_dispatch = lambda overload, key: self._get_dispatch(overload, key)
                torch._C._dispatch_tls_set_dispatch_key_included(self._key, True)

        return wake

    @contextlib.contextmanager
    def key_included(self):
        """Within it the thread has the dispatch keys that it has while calls are seen. Those that it makes are still not seen where this sleeps."""
        include, included = self.torch._C._dispatch_tls_set_dispatch_key_included, self.torch._C._dispatch_tls_is_dispatch_key_included
        is_out = self.running and self.thread == threading.get_ident() and not included(self._key)
        if is_out:
            include(self._key, True)
        try:
            yield
        finally:
            if is_out:
                include(self._key, False)

    def refuse(self, reason):
        """The program does what cannot be written down; it goes on unseen."""
        if self.refused is None:
            self.refused = reason
            self.end()

    def _get_dispatch(self, overload, key):
        if key != self._key or not self.running:
            return self._find(overload, key)
        kernel = self._kernel(overload)
        overload._dispatch_cache[key] = kernel
        self._handled.append(overload)
        return kernel

    # ---- calls of operators

    def _kernel(self, overload):
        """What runs in place of the operator on the PreDispatch key."""
        off = self.off
        tensor_class = self._tensor
        signature = Signature(overload)
        compiling = self.torch.compiler.is_compiling
        transform, transforms = self.transform, self.transforms
        run = self.device.rule(overload) or overload

        def call(*arguments, **options):
            if transform() is not None:
                return self.transforms.call(overload, self._tensors_in([*arguments, *options.values()]), arguments, options)
            if self.paused or not self.running or signature.asks or compiling() or self._is_traced():
                with off():
                    return overload(*arguments, **options)
            if self.nested.among(arguments, options.values()) or self.nested.has_kernel(overload, arguments):
                return self.nested.call(overload, arguments, options)
            if signature.passes_on:
                return self._pass_on(signature, overload, arguments, options)
            if signature.records_stream:
                self.step(f"record_stream(%{self.use(arguments[0])}, {self._stream_number(arguments[1].stream_id)})")
                with off():
                    return overload(*arguments, **options)
            if signature.takes_storage and self._concern(arguments):
                return self._set_storage(overload, arguments, options)
            relevant = self._concern(arguments) or (options and self._concern(options.values()))
            if relevant:
                self.drop_held()
            texts = self._arguments(signature, arguments, options) if relevant else None
            transforms.write_nodes(self)
            calls, used = self._now, self._now.used
            calls.used = []  # the operator may call functions of the program's, which are written before it
            around, self.redistributed = self.redistributed, Redistributed(arguments)
            try:
                with off() if transforms.depth == 0 else transforms.wrappers.seen(off()):
                    result = run(*arguments, **options)
            finally:
                redistributed, self.redistributed = self.redistributed, around
            calls.used = used
            transforms.note_nodes()
            if redistributed.locals:
                texts = self._arguments(signature, redistributed.among(arguments), options)
            if texts is None:
                if not self._on_device(result):
                    return result
                texts = self._arguments(signature, arguments, options)
            if type(result) is tensor_class and not signature.writes:
                made = self._made(result) + " = "
            else:
                made = self._all_made(signature, result)
            if signature.chooses_attention:
                self._write_attention()
            self._call(f"{made}{signature.name}({texts})", self.transforms.frame or caller())
            if signature.makes_list:
                self._lists.made(result[1])
            return result

        return call

    def _set_storage(self, overload, arguments, options):
        """A storage is named by a tensor that looks into it; sizes, strides and offset are what the tensor has afterwards."""
        tensor, storage = arguments[:2]
        self.drop_held()
        source, number = self.looking_into(storage._cdata), self.use(tensor)
        source = self._storages.number_of(storage) if source is None else self.use(source)
        given = f"%{number}, " + ('unknown("UntypedStorage")' if source is None else f"%{source}")
        with self.off():
            result = overload(*arguments, **options)
        place = f"{tensor.storage_offset()}, {list(tensor.shape)}, {list(tensor.stride())}"
        self._call(f"_ = aten::set_.source_Tensor_storage_offset({given}, {place})", sys._getframe(2))
        return result

    def _pass_on(self, signature, overload, arguments, options):
        """Runs an operator whose own calls stand in the program, before it. Of its results those are its own that they have not made."""
        self.drop_held()
        keys = distributed.keys_below(self.torch, overload, self._tensors_in(arguments))
        if keys is None:
            with self.off():
                result = overload(*arguments, **options)
        else:
            result = overload.redispatch(keys, *arguments, **options)
        if (signature.is_written or keys is None) and (self._concern(arguments) or self._on_device(result)):
            texts = self._arguments(signature, arguments, options)
            made = self._all_made(signature, distributed.own_results(self, arguments, result))
            self._call(f"{made}{signature.name}({texts})", sys._getframe(2))
            for tensor in distributed.sent(self.torch, signature.name, arguments):
                self.call(f"step::record_stream(%{self.use(tensor)}, {self._stream_number(distributed.OF_RANKS)})")
        return result

    def _concern(self, values):
        """Whether a call that takes these is written down: some are on the device, or part of what autograd follows from there."""
        tensor_class = self._tensor
        for value in values:
            if isinstance(value, tensor_class):
                if self._has_memory(value) or (value.requires_grad and id(value) in self._now.names):
                    return True
            elif type(value) in (list, tuple) and value and self._concern(value):
                return True
        return False

    def _has_memory(self, tensor):
        """Whether it is on the device, and not only said to be (while a compiler looks at what a function does)."""
        return tensor.is_cuda and (type(tensor) in self._plain or type(tensor).__name__ != "FakeTensor")

    def _on_device(self, result):
        if isinstance(result, self._tensor):
            return self._has_memory(result)
        return isinstance(result, (list, tuple)) and any(self._on_device(value) for value in result)

    def _arguments(self, signature, arguments, options):
        texts = [self._argument(signature, i, value) for i, value in enumerate(arguments)]
        for name, value in options.items():
            texts.append(f"{name}={self._argument(signature, name, value)}")
        return ", ".join(texts)

    def _argument(self, signature, which, value):
        if isinstance(value, self._tensor):
            number = self.use(value)
            if which in signature.lists:
                self._lists.tell(number, value)
            # A conversion that changes nothing gives back its argument, which then has two numbers. Whoever asks it for a dtype
            # wants that of before the conversion: `norm(x.float()).type_as(x)`.
            return f"%{self._now.names[id(awaited(value))].numbers[0] if which in signature.gives_dtype else number}"
        if type(value) in (list, tuple):
            if not value:
                return signature.empty.get(which, "[]")
            if any(isinstance(element, (list, tuple)) for element in value):  # collectives take lists of lists
                value = [element for some in value for element in (some if isinstance(some, (list, tuple)) else [some])]
            if any(isinstance(element, self._tensor) for element in value):
                return "[" + ", ".join("None" if element is None else f"%{self.use(element)}" for element in value) + "]"
            if which in signature.reals:
                return "[" + ", ".join(real(float(element)) for element in value) + "]"
        if type(value) is self._dtype:
            self._given_dtype = value
        return self._constants.text(value)

    def warn(self, text):
        """What a reader of the program should know."""
        if text not in self._warnings:
            self._warnings.append(text)

    # ---- values

    def use(self, tensor):
        """The number of a tensor that a call takes."""
        if type(tensor) not in self._plain:
            tensor = awaited(tensor)
        name = self._now.names.get(id(tensor))
        if name is None:
            return self._meet(tensor)
        if name.gone is not None:
            self._is_back(name)
        self._now.used.append(name)
        if tensor.requires_grad is not name.grad:
            name.grad = tensor.requires_grad
            if tensor.is_leaf:
                self.add(f"step::requires_grad(%{name.numbers[-1]}, {tensor.requires_grad})")
        return name.numbers[-1]

    def _meet(self, tensor):
        """A tensor that no call has made: a view that Python took, or something from before or from elsewhere."""
        enclosing = self._now.enclosing
        if enclosing and enclosing.takes(tensor):
            return self.use(tensor)
        if self._sparse.is_one(tensor):
            return self._sparse.meet(tensor)
        base = self.looking_into(self._address(tensor)) if tensor.is_cuda else None
        facts = self._facts_of(tensor)
        grad = " grad" if tensor.requires_grad and facts else ""
        if base is None:
            number = self.new(tensor)
            self.add(f"%{number}: {facts or 'u8[0]'}{grad} = step::tensor()")
        else:
            self._alias(tensor, base)
        name = self._now.names[id(tensor)]
        self._now.used.append(name)
        return name.numbers[-1]

    def alias(self, tensor, base):
        """A tensor over another one's memory, without its history."""
        if id(tensor) not in self._now.names:
            self.use(base)
            self._alias(tensor, base)

    def _alias(self, tensor, base, grad=True):
        name = self._now.names[id(base)]
        if name.gone is not None:
            self._is_back(name)
        self.look(tensor, name.numbers[-1], grad)
        name.last = len(self._now.calls) - 1

    def look(self, tensor, of, grad=True):
        """Writes that a tensor is another one over the memory of this value."""
        number = self.new(tensor)
        memory = self._memory_of(tensor)
        offset = f" offset {memory.storage_offset()}" if memory.storage_offset() else ""
        grad = " grad" if grad and tensor.requires_grad else ""
        self.add(f"%{number}: {self._facts_of(tensor)}{offset}{grad} = step::alias(%{of})")

    def living(self):
        """The tensors that have names."""
        return [tensor for tensor in (name() for name in list(self._now.names.values())) if tensor is not None]

    def looking_into(self, address):
        """A tensor that has a name and looks into the storage at this address; None: there is none."""
        if address is None:
            return None
        for name in list(self._now.names.values()):
            other = name()
            if other is not None and other.is_cuda and self._address(other) == address:
                return other
        return None

    def _address(self, tensor):
        try:
            return self.torch._C._storage_address(self._memory_of(tensor))
        except (RuntimeError, NotImplementedError):  # sparse, and other kinds without a storage
            return None

    def number(self):
        """Of another value."""
        self._values += 1
        return self._values - 1

    def new(self, tensor):
        """The number of a tensor that has no name yet, or of another value that is the same object."""
        kind = type(tensor)
        if tensor.is_nested and not is_nested(tensor):
            self.refuse("it computes with nested tensors of strided layout; those of jagged layout (layout=torch.jagged) are known")
        if kind not in self._kinds:
            self._kinds.add(kind)
            # It calls operators on other tensors, below autograd.
            if kind.__torch_dispatch__ is not self._tensor.__torch_dispatch__ and inner(tensor) is None:
                self.refuse(f"it computes with tensors of the class {kind.__module__}.{kind.__qualname__}, whose operators are called below autograd")
        number, key = self.number(), id(tensor)
        name = self._now.names.get(key)
        if name is None:
            name = self._now.names[key] = Name(tensor, self._died, self._now, number)
            # Within a transform of torch.func a tensor may be held by its wrapper alone, which no count tells.
            # So may one that autocast has converted.
            counted = self.device.may_be_held(tensor) or (name.grad and (kind is self._tensor or is_nested(tensor)) and self.torch.is_grad_enabled())
            if self._counts_tell and counted and not (self.transforms.depth or self.nested.casting):
                self._now.held.watch(name)
        else:
            if name.gone is not None:
                self._is_back(name)
            name.numbers.append(number)
        self._now.used.append(name)
        return number

    def _died(self, name):
        calls = name.calls
        if calls.names.get(name.key) is name:
            del calls.names[name.key]
        if self.running and calls.open and calls.calls and name.gone is None:
            within_backward = self.paused or calls is not self._now
            calls.drops.setdefault(name.last if within_backward else len(calls.calls) - 1, []).extend(name.numbers)

    def drop_held(self):
        """Drops what only autograd holds since the last call."""
        calls = self._now
        for name in calls.held.gone():
            if calls.calls:
                name.gone = len(calls.calls) - 1
                calls.drops.setdefault(name.gone, []).extend(name.numbers)

    def _is_back(self, name):
        """Autograd has given it back to the program: it has not been dropped."""
        drops = name.calls.drops[name.gone]
        for number in name.numbers:
            drops.remove(number)
        name.gone = None
        name.calls.held.watch(name)

    def _memory_of(self, tensor):
        """The tensor that has its memory: itself, if it wraps none."""
        return tensor if type(tensor) in self._plain else inner(tensor) if inner(tensor) is not None else tensor

    def _facts_of(self, tensor):
        return self._facts.of(self._memory_of(tensor))

    def made(self, tensor):
        """The text of a value that a call makes."""
        return self._made(tensor) if isinstance(tensor, self._tensor) else "_"

    def _made(self, tensor):
        tensor = tensor if type(tensor) in self._plain else awaited(tensor)
        number = self.new(tensor)
        facts = self._facts_of(tensor)
        return f"%{number}: {facts}" if facts else f"%{number}"

    def _tensors_in(self, values):
        for value in values:
            if isinstance(value, self._tensor):
                yield awaited(value)
            elif isinstance(value, (list, tuple)):
                yield from self._tensors_in(value)

    def _all_made(self, signature, result):
        if signature.results == 0:
            return ""
        results = result if signature.results > 1 else (result,)
        texts = []
        for i, one in enumerate(results):
            if i in signature.writes:
                if isinstance(one, self._tensor) and id(one) in self._now.names:
                    self._now.names[id(one)].grad = one.requires_grad
                texts.append("_" if not isinstance(one, (list, tuple)) else "[" + ", ".join("_" for _ in one) + "]")
            elif isinstance(one, (list, tuple)):
                texts.append("[" + ", ".join(self.made(element) for element in one) + "]")
            else:
                texts.append(self.made(one))
        return ", ".join(texts) + " = "

    # ---- lines

    def _call(self, text, frame):
        """Writes a call of an operator, after what has changed since the last one."""
        self.write_modes()
        scope = self._now.modules[-1][0]
        stack = self._places.stack(frame)
        source = None if self._given_dtype is None else self.dtypes.source(frame, self._given_dtype)
        self._given_dtype = None
        dtype = "" if source is None else " dtype_named" if source == "named" else f" dtype_of %{source}"
        self.call(f"{text}{f' in m{scope}' if scope else ''}{f' at s{stack}' if stack else ''}{dtype}")

    def unchanged(self, tensor, text, goes):
        """A call that has given back its argument itself: another value of the same object. `goes`: nobody else has held the argument."""
        self.drop_held()
        before = self.use(tensor)
        name = self._now.names[id(tensor)]
        old = list(name.numbers)
        self._call(f"{self._made(tensor)} = {text.format(f'%{before}')}", sys._getframe(2))
        if goes:
            name.numbers = name.numbers[len(old):]
            self._now.drops.setdefault(len(self._now.calls) - 1, []).extend(old)

    def new_calls(self):
        return Calls(self.torch.is_grad_enabled(), self.stream())

    def lines_with_drops(self, calls):
        """Of a function that has returned."""
        lines, drops = list(calls.lines), {}
        for call, numbers in calls.drops.items():
            drops.setdefault(calls.calls[min(call, len(calls.calls) - 1)], []).extend(numbers)
        for line, numbers in drops.items():
            lines[line] += " drop " + ", ".join(f"%{number}" for number in numbers)
        return lines

    def _stream_number(self, stream):
        return self._streams.setdefault(stream, len(self._streams))

    def stream(self):
        """The number of the one that is current."""
        stream = self.device.stream()
        return self._stream_number(("captured", stream) if self.captures else stream)

    def knows_stream(self, stream):
        """Whether the program has worked on it, as PyTorch numbers it."""
        return stream in self._streams

    def write_stream(self):
        """On which stream the calls that follow take their memory, if it is another one than before."""
        number = self.stream()
        if number != self._now.stream:
            self._now.stream = number
            self.add(f"step::stream({number})")

    def write_modes(self):
        """The modes that have changed since the last call; they stand behind the tensors that the call has met, which do not care."""
        torch = self.torch
        self.write_stream()
        grad = torch.is_grad_enabled()
        if grad is not self._now.grad and not self._switches_itself():
            self.add(f"step::grad_mode({grad})")
            self._now.grad = grad
        inference = torch.is_inference_mode_enabled()
        if inference is not self._now.inference:
            self.add(f"step::inference_mode({inference})")
            self._now.inference = inference
        engine = threading.get_ident() != self.thread
        if engine is not self._now.engine:
            self.add(f"step::engine_thread({engine})")
            self._now.engine = engine

    def _switches_itself(self):
        """Gradients are off within these by themselves."""
        return self.functions.depth > 0 or self.regions.is_reentrant() or self.nested.runs

    def _write_attention(self):
        """Which implementations of attention may be chosen, if others than before (torch.nn.attention.sdpa_kernel)."""
        allowed = tuple(getattr(self.torch._C, f"_get_{name}_sdp_enabled")() for name in ("flash", "mem_efficient", "math", "cudnn"))
        if allowed != self._now.attention:
            self._now.attention = allowed
            self.add(f"step::attention({', '.join(map(str, allowed))})")

    def call(self, text):
        """Writes a call, which is the last one so far that takes what has been used for it."""
        for name in self._now.used:
            name.last = len(self._now.calls)
        self._now.used.clear()
        self.add(text)

    def add(self, text):
        """Writes a call that stands before the one that is being prepared."""
        self._now.calls.append(len(self._now.lines))
        self._now.lines.append(text)

    def step(self, text):
        """A call of `step::`, if the program is being captured and the thread is its own."""
        if self.active():
            self.drop_held()
            self.call(f"step::{text}")

    def active(self):
        return self.running and not self.paused and threading.get_ident() == self.thread and self.transform() is None and not self._is_traced()

    def concerns(self, tensor):
        """Whether what is done to a tensor without an operator is written down."""
        return self.active() and (tensor.is_cuda or id(tensor) in self._now.names)

    def _is_traced(self):
        """Whether a function is being looked at (make_fx) instead of called."""
        return self._mode(self._tracing) is not None

    # ---- what the recorder observes

    def cut(self, number):
        if self.running:
            self.drop_held()
            program = self._program
            program.calls.append(len(program.lines))  # what dies now goes in the next phase
            program.lines.append(number)

    def enter(self, path):
        if self.active():
            number, calls, _ = self._now.modules[-1]
            count = calls.get(path, 0)
            calls[path] = count + 1
            self._now.modules.append((self._places.scope(number, path, count), {}, len(self._now.calls)))

    def leave(self, *given):
        """`given`: the arguments of the module's call."""
        if self.active() and len(self._now.modules) > 1:
            keep_unused(self, tensors_in(self._tensor, given), self._now.modules[-1][2])
            self._now.modules.pop()
            if len(self._now.modules) == 1:
                self._now.modules[0][1].clear()

    def name(self, kind, tensor, name="", persistent=True):
        """What a tensor is for; whether a buffer is part of the model's state."""
        if not self.active() or not isinstance(tensor, self._tensor) or not (self._has_memory(tensor) or id(tensor) in self._now.names):
            return
        number = self.use(tensor)
        if number not in self._named:
            self._named.add(number)
            if kind in ("parameter", "buffer"):  # its module holds it
                self._now.held.forget(self._now.names[id(awaited(tensor))])
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
        return program_lines.text(self._program, rows, lines, self.regions.values_before, self.functions)
