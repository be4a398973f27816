"""Nested tensors of jagged layout: the program has what their operators call on the tensors that they are made of.

Such a tensor is an object around its values and its offsets. Autograd is above it: an operator on it is one node, whose gradients are
such tensors, too. Below autograd torch/nested/_internal/ops.py calls operators on the values. Those calls are written down; an operator
that makes a node is written as a function (functions.py) with its calls as the forward, and as the backward what the node calls when it
runs. In the place of a nested tensor stand its values: its own name is another look at them, which has its gradient.

So it is with operators on DTensors that call something else than themselves on what these hold: a loss whose classes are on several ranks
(`loss_parallel`), and attention to tokens that are on several ranks (context parallel). Other operators on DTensors are written down with the tensors
that these hold.

Within a checkpoint what a node has saved is packed, and made again when it is asked for. Hooks around the checkpoint's own tell both.
"""
import contextlib
import functools
import threading

from metaprof_recorder.capture.functions import Body, Function, listed
from metaprof_recorder.capture.nodes import own
from metaprof_recorder.process.import_hook import after_import
from metaprof_recorder.text.arguments import words


LOSS = ("aten::cross_entropy_loss", "aten::nll_loss_nd", "aten::nll_loss", "aten::log_softmax.int")
ATTENTION = ("aten::scaled_dot_product_attention",)
HANDLERS = (  # a module, its table of functions that run operators on DTensors, and who calls these operators
    ("torch.distributed.tensor.parallel.loss", "customized_loss_ops", LOSS),
    ("torch.distributed.tensor.experimental._context_parallel._attention", "custom_ops", ATTENTION),
    ("torch.distributed.tensor.experimental._attention", "customized_ops", ATTENTION))  # before 2.10


def is_nested(tensor):
    return type(tensor).__name__ == "NestedTensor" and type(tensor).__module__ == "torch.nested._internal.nested_tensor"


def is_distributed(tensor):
    return hasattr(tensor, "_local_tensor")


def parts(tensor):
    """What a nested tensor or a DTensor holds on the device; another one holds itself."""
    if is_distributed(tensor):
        return [tensor._local_tensor]
    if not is_nested(tensor):
        return [tensor]
    return [part for part in (tensor._values, tensor._offsets, tensor._lengths) if part is not None]


class NestedFunction(Function):
    """An operator that backward will come to."""
    is_seen = True

    def __init__(self, functions, name, given):
        super().__init__(functions, name, given)
        self.saved_values = {}  # number of a value -> its place among those that the node has saved
        self.addresses = {}     # … and by its storage, with what it is
        self.packed = []        # within a checkpoint: what it has saved, until it has returned
        self.places = []        # … and afterwards the place of each
        self.unpacked = {}      # id of what it is given back -> (itself, its place), while it runs


class NestedBody(Body):
    def takes(self, tensor):
        """What the node has saved is an input of the graph, and goes when the node has run."""
        if id(tensor) in self.function.unpacked:
            self.add(("saved", self.function.unpacked[id(tensor)][1]), tensor)
            return True
        saved = self.function.saved_values
        name = self.enclosing.names.get(id(tensor))
        numbers = name.numbers if name is not None and name() is tensor else ()
        place = next((saved[number] for number in numbers if number in saved), None)
        if place is not None:
            self.add(("saved", place), tensor)
            return True
        place, facts = self.function.addresses.get(self.capture.tensors.address(tensor), (None, None)) if tensor.is_cuda else (None, None)
        if place is None or ("saved", place) in self.inputs:
            return super().takes(tensor)
        if self.capture.tensors.facts_of(tensor) == facts:
            self.add(("saved", place), tensor)
        else:  # another look at it
            number = self.capture.values.next_number()
            self.inputs["saved", place] = f"%{number}: {facts}"
            self.capture.values.look(tensor, number)
        return True

    def source(self, number):
        """Gradients are nested, too, and have offsets that other nodes saved: they are held until this one has run, as what it saved is."""
        saved = self.function.saved_values
        return "saved", saved.setdefault(number, len(saved))


class Nested:
    def __init__(self, capture, torch):
        self._capture, self._torch = capture, torch
        self._snapshot = torch._C.DispatchKeySet(torch._C.DispatchKey.PythonTLSSnapshot)
        self._top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # PyTorch 2.6 does not tell
        self._saved_names = {}  # name of a node's class -> its attributes that say what it has saved
        self.casting = False  # autocast converts what an operator is given; it keeps converted parameters until its region ends
        self._running = None  # while a node runs: what stood before it
        self._handlers = []    # (table, who calls its operators) of HANDLERS; the dispatcher has a table's functions while they are on

    def install(self):
        from torch.nested._internal.nested_tensor import NestedTensor
        self._capture.patches.set(NestedTensor, "__torch_dispatch__", classmethod(self._seen(NestedTensor.__torch_dispatch__.__func__)))
        if self._torch.distributed.is_available():
            for module, table, callers in HANDLERS:
                self._capture.patches.later(after_import(module, functools.partial(self._watch_handlers, table, callers)))

    def _watch_handlers(self, table, callers, module):
        handlers = getattr(module, table, {})
        for overload, handler in list(handlers.items()):
            handlers[overload] = self._seen(handler)
        if handlers:
            self._dispatcher = module.DTensor._op_dispatcher
            self._handlers.append((handlers, callers))

    def _seen(self, function):
        """Whoever is called below autograd calls operators with the keys above it left out: ours, too."""
        dispatcher, keys = self._torch._C, self._torch._C.DispatchKey
        ours = keys.PreDispatch, keys.PythonDispatcher

        @functools.wraps(function)
        def call(*arguments, **options):
            capture = self._capture
            excluded = [key for key in ours if capture.running and not capture.paused and dispatcher._dispatch_tls_is_dispatch_key_excluded(key)]
            for key in excluded:
                dispatcher._dispatch_tls_set_dispatch_key_excluded(key, False)
            try:
                return function(*arguments, **options)
            finally:
                for key in excluded:
                    dispatcher._dispatch_tls_set_dispatch_key_excluded(key, True)

        return call

    def has_kernel(self, overload, arguments):
        """Whether an operator on DTensors calls something else than itself on what they hold."""
        if not self._handlers or not any(is_distributed(one) for one in arguments) or self._cannot_tell():
            return False
        on = self._dispatcher._custom_op_handlers
        return any((overload in handlers or overload.name() in callers) and next(iter(handlers)) in on for handlers, callers in self._handlers)

    def among(self, *lists):
        """Whether some of these are nested tensors."""
        plain, tensor_class = self._capture.tensors.plain, self._torch.Tensor
        for values in lists:
            for value in values:
                if isinstance(value, tensor_class):
                    if type(value) not in plain and is_nested(value):
                        return True
                elif type(value) in (list, tuple) and value and self.among(value):
                    return True
        return False

    # ---- forward

    def call(self, overload, arguments, options):
        """Goes on below the key on which calls are seen; what is called there is seen again."""
        capture = self._capture
        tensors = list(capture.tensors.within([*arguments, *options.values()]))
        key = capture.transforms.target(overload, tensors)
        # Which key is first says only that the modes of the thread are remembered, for who is called below autograd.
        below = capture.transforms.target(overload, tensors, self._snapshot)
        casting, self.casting = self.casting, below.name.startswith("Autocast")
        try:
            return self._go_on(overload, key, below, tensors, arguments, options)
        finally:
            self.casting = casting

    def _go_on(self, overload, key, below, tensors, arguments, options):
        capture = self._capture
        needs = self._torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
        if not needs or not below.name.startswith("Autograd") or capture.functions.depth or capture.now is not capture.program:
            return overload._op_dk(key, *arguments, **options)
        return self._function(overload, key, tensors, arguments, options)

    def _function(self, overload, key, tensors, arguments, options):
        capture, functions = self._capture, self._capture.functions
        name = overload.name()
        if self._cannot_tell():
            kind = "selective checkpoint" if capture.regions.asks else "checkpoint (PyTorch 2.7 and later can)"
            capture.refuse(f"{name} is called on nested tensors of jagged layout within a {kind}")
            return overload._op_dk(key, *arguments, **options)
        capture.values.drop_held()
        given = [one for one in tensors if one.requires_grad]
        function = NestedFunction(functions, name, [capture.values.use(one) for one in given])
        capture.modes.write()
        capture.step(f"function_enter({words(name)})")
        functions.depth = 1
        try:
            with self._around_packing(function):
                result = overload._op_dk(key, *arguments, **options)
        finally:
            functions.depth = 0
        if capture.running:
            self._leave(function, given, result)
        return result

    def _leave(self, function, given, result):
        capture = self._capture
        made = self._made(result)
        node = made[0].grad_fn if made else None
        saved, edges = [], []
        if node is not None:
            edges = [i for i, (other, _) in enumerate(node.next_functions) if other is not None]
            if len(edges) != len(given) and len(given) > 1:
                return capture.refuse(f"gradients of {function.name} on nested tensors of jagged layout cannot be told apart")
            saved = function.packed or self._saved(node)
        texts = [None] * (1 + max((one.output_nr for one in made), default=-1))
        for one in made:
            texts[one.output_nr] = f"%{self._result(one)}"
        function.wrapped = any(is_nested(one) or is_distributed(one) for one in made)
        for one in saved:
            number = self._value(one)
            if number not in function.saved_values:
                function.addresses.setdefault(capture.tensors.address(one), (len(function.saved_values), capture.tensors.facts_of(one)))
                function.saved_values[number] = len(function.saved_values)
            if function.packed:
                function.places.append(function.saved_values[number])
        function.packed = []
        function.made, function.values = len(texts), capture.values.count
        arguments = listed([capture.values.use(one) for one in given])
        capture.functions.leaves[len(capture.now.lines)] = function
        results = f"[{', '.join(text or 'None' for text in texts)}]" if made else "tensors[]"
        capture.call(f"step::function_leave({words(function.name)}, {arguments}, {results}, ")
        function.call = len(capture.now.calls) - 1
        if node is not None:
            self._watch(node, function, edges)

    def _made(self, result):
        """The results that have a gradient."""
        return [one for one in self._capture.tensors.within([result]) if one.grad_fn is not None]

    def _result(self, tensor):
        """A nested tensor's own name, or that of a tensor that autograd has made of what the calls gave back."""
        capture = self._capture
        if id(tensor) in capture.now.names:
            return capture.values.use(tensor)
        memory = capture.tensors.memory_of(tensor)
        base = memory if id(memory) in capture.now.names else capture.values.looking_into(capture.tensors.address(tensor))
        if base is None:
            return capture.values.use(tensor)
        capture.values.use(base)
        capture.values.write_alias(tensor, base, False)
        return capture.values.use(tensor)

    def _value(self, tensor):
        """The number of a tensor that a node has saved: of one over the same memory, if there is one that looks alike."""
        capture = self._capture
        if id(tensor) not in capture.now.names:
            base = capture.values.looking_into(capture.tensors.address(tensor))
            if base is not None and not is_nested(base) and capture.tensors.facts_of(base) == capture.tensors.facts_of(tensor):
                tensor = base
        return capture.values.use(tensor)

    def _saved(self, node):
        """The parts of what a node has saved, on the device."""
        capture = self._capture
        kind = type(node).__name__
        if kind not in self._saved_names:
            self._saved_names[kind] = [name for name in dir(node) if name.startswith("_saved_")]
        found = {}
        capture.paused += 1
        try:
            with capture.dispatch.off():
                for name in self._saved_names[kind]:
                    for tensor in capture.tensors.within([getattr(node, name)]):
                        for part in parts(tensor):
                            if part.is_cuda:
                                found.setdefault(id(part), part)
        finally:
            capture.paused -= 1
        return list(found.values())

    # ---- within a checkpoint

    def _cannot_tell(self):
        """Whether it is not known what a node saves and is given back. The policy of a selective checkpoint counts calls of operators, and the program
        would have others."""
        regions = self._capture.regions
        return regions.asks or (regions.is_open() and self._top is None)

    def _around_packing(self, function):
        """Hooks that are told what the node saves and is given back, around those that pack it."""
        top = self._top and self._top(False)
        if top is None:
            return contextlib.nullcontext()
        pack, unpack = top

        def packed(tensor):
            first = len(function.packed)
            function.packed += [part for part in parts(tensor) if part.is_cuda]
            return range(first, len(function.packed)), pack(tensor)

        def unpacked(held):
            which, packed = held
            self._capture.paused += 1
            try:
                with self._capture.dispatch.off():  # a checkpointed region is recomputed here
                    tensor = unpack(packed)
            finally:
                self._capture.paused -= 1
            if self._running is not None and self._running[1].function is function:
                some = [part for part in parts(tensor) if part.is_cuda]
                function.unpacked.update({id(part): (part, function.places[i]) for part, i in zip(some, which)})
            return tensor

        return self._torch.autograd.graph.saved_tensors_hooks(packed, unpacked)

    # ---- backward

    @property
    def runs(self):
        """Whether the backward of an operator on nested tensors runs. Below autograd gradients are on or off without a meaning."""
        return self._running is not None

    def _watch(self, node, function, edges):
        def before(gradients):
            self._begin(function, gradients)

        def after(results, gradients):
            self._end(function, [results[i] if i < len(results) else None for i in edges])

        node.register_prehook(own(before))
        node.register_hook(own(after))

    def _begin(self, function, gradients):
        capture = self._capture
        if not capture.running or function.body is not None or capture.now is not capture.program:
            return
        if self._torch.is_grad_enabled():
            capture.refuse(f"gradients of gradients of {function.name} on nested tensors of jagged layout are made")
            return
        functions = capture.functions
        before = capture.now, capture.paused, capture.thread, functions.depth
        calls = capture.new_calls()
        body = function.body = calls.enclosing = NestedBody(function, calls, capture.now)
        capture.now, capture.paused, capture.thread, functions.depth = calls, 0, threading.get_ident(), 0
        self._running = before, body, capture.torch._C._EnablePythonDispatcher()
        for i, gradient in enumerate(gradients):
            if gradient is not None:
                body.add(("gradient", i), capture.tensors.memory_of(gradient))

    def _end(self, function, results):
        if self._running is None or self._running[1].function is not function:
            return
        capture = self._capture
        body = self._running[1]
        body.returns = [f"%{capture.values.use(capture.tensors.memory_of(one))}" if one is not None else "None" for one in results]
        function.unpacked = {}
        self.restore()

    def restore(self):
        """What stood before the node's backward."""
        if self._running is None:
            return
        capture = self._capture
        before, body, guard = self._running
        self._running = None
        del guard
        body.calls.open = False
        capture.now, capture.paused, capture.thread, capture.functions.depth = before
