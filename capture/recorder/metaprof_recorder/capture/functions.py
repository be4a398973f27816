"""Custom functions (`torch.autograd.Function`): what their forward calls is part of the program, and what their backward calls a graph.

The forward's calls stand in the program between `step::function_enter` and `step::function_leave`, where gradients are off. The latter
says what the function was given, made and keeps, and takes the backward's calls as a graph, whose inputs are the gradients of the
results, what `save_for_backward` saved, and other tensors that it keeps. They are seen when the first backward runs them, so that
the line is finished when the text is written. What is not seen (a function in a reentrant checkpoint is made again in backward) is
that of another call of the same function with tensors of the same sizes, if there is one, else None.
"""
import threading

from metaprof_recorder.text.arguments import words

NUMBER = "_metaprof_function"  # attribute of a function's context


class Body:
    """The calls of one backward, with the inputs of its graph: number of a value by where it is from."""

    def __init__(self, function, calls, enclosing):
        self.function, self.calls, self.enclosing = function, calls, enclosing
        self.inputs = {}   # ("gradient", i), ("saved", i) or ("kept", number in the program) -> "%n: f32[2]"
        self.returns = []
        self.capture = function.functions.capture

    def add(self, source, tensor):
        """The tensor is an input of the graph, unless it is one already."""
        if id(tensor) not in self.calls.names:
            text = self.capture.values.made(tensor)
            self.inputs.setdefault(source, text)

    def takes(self, tensor):
        """Makes a tensor of the program's an input; False: it is none."""
        name = self.enclosing.names.get(id(tensor))
        if name is None or name() is not tensor:
            return False
        number = max((number for number in name.numbers if number < self.function.values), default=None)
        if number is None:
            return False
        self.add(self.source(number), tensor)
        if name.gone is None:
            name.last = max(name.last, self.function.call)
        return True

    def source(self, number):
        """Where a value of the program is from that the function has not saved."""
        return "kept", number


class Function:
    """A call of a custom function that backward will come to."""
    is_seen = False  # whether its backward is seen wherever it runs, and what that takes counts as saved

    def __init__(self, functions, name, given):
        self.functions, self.name, self.given = functions, name, given
        self.saved = self.made = 0  # how many
        self.kept = []     # numbers of values
        self.call = 0      # of the program: that by which it is left
        self.values = 0    # how many the program had before it
        self.wrapped = False  # whether its results stand for tensors of a class of its own, which are made of them
        self.tensors = []  # which of the forward's arguments are tensors
        self.key = self.number = None  # the latter: of a hook, if its backward is one
        self.body = None


class Functions:
    def __init__(self, capture):
        self.capture = capture
        self.depth = 0        # of forwards that run
        self.all = []
        self.leaves = {}      # index of a line -> Function
        self._saving = None   # contexts of the forward that runs, by their ids, and what they have saved

    def install(self):
        import torch.utils.checkpoint as checkpoint
        autograd, patch = self.capture.torch.autograd.function, self.capture.patches.set
        self._own = checkpoint.__name__
        self._watch_apply(autograd, patch)
        backward, save = autograd.BackwardCFunction.apply, autograd.FunctionCtx.save_for_backward
        saved = autograd.BackwardCFunction.saved_tensors

        def saving(context, *tensors):
            if self._saving is not None:
                self._saving[id(context)] = context, tensors
            return save(context, *tensors)

        patch(autograd.BackwardCFunction, "apply", lambda context, *gradients: self._backward(backward, context, gradients, gradients))
        boxed = getattr(autograd.BackwardCFunction, "apply_boxed", None)  # 2.14: the list is emptied by who gets it
        if boxed:
            patch(autograd.BackwardCFunction, "apply_boxed", lambda context, gradients: self._backward(boxed, context, (gradients,), gradients))
        patch(autograd.FunctionCtx, "save_for_backward", saving)
        clear = getattr(autograd.BackwardCFunction, "maybe_clear_saved_tensors", None)
        if clear:
            patch(autograd.BackwardCFunction, "maybe_clear_saved_tensors", lambda context: self._cleared(context, clear))
        patch(autograd.BackwardCFunction, "saved_tensors", property(lambda context: self._unpacked(context, saved.__get__)))

    def _watch_apply(self, autograd, patch):
        """Below `Function.apply` where that is Python: programs hold it under names of their own (`scale = Scale.apply`)."""
        apply = autograd.Function.__dict__["apply"]
        if hasattr(apply, "__func__"):
            below = self.capture.torch._C._FunctionBase.__dict__["apply"]
            self._apply = lambda cls, *arguments: below.__get__(None, cls)(*arguments)
            owner = autograd._SingleLevelFunction
        else:  # from 2.14 on it is a method in C, which takes the class as it is
            self._apply, owner = apply, autograd.Function
        patch(owner, "apply", classmethod(lambda cls, *arguments, **options: self._forward(cls, arguments, options)))

    # ---- forward

    def _forward(self, cls, arguments, options):
        capture = self.capture
        within = self.depth or capture.now is not capture.program  # within a backward there are no gradients of it, either
        if cls.__module__ == self._own or within or not capture.active() or not capture.values.concern(arguments):
            return self._apply(cls, *arguments, **options)
        tensor_class = capture.tensors.kind
        given = [value for value in arguments if isinstance(value, tensor_class)]
        function = Function(self, f"{cls.__module__}::{cls.__qualname__}", [capture.values.use(value) for value in given])
        function.tensors = [isinstance(value, tensor_class) for value in arguments]
        # What FSDP's own do in backward has effects beyond the gradients.
        function.number = capture.backward.number() if cls.__module__.startswith("torch.distributed.fsdp") else None
        function.key = (cls, tuple(capture.tensors.facts.of(value) for value in given))
        capture.modes.write()
        capture.step(f"function_enter({words(function.name)})")
        self._saving, self.depth = {}, 1
        try:
            result = self._apply(cls, *arguments, **options)
            self._leave(function, given, result)
            return result
        finally:
            self._saving, self.depth = None, 0

    def _leave(self, function, given, result):
        capture = self.capture
        results = result if isinstance(result, tuple) else (result,)
        contexts = [one.grad_fn for one in results if isinstance(one, capture.tensors.kind) and one.requires_grad]
        context = contexts[0] if contexts and hasattr(contexts[0], "_forward_cls") else None

        def values(tensors):
            texts = [f"%{capture.values.use(one)}" if isinstance(one, capture.tensors.kind) else "None" for one in tensors]
            return "[" + ", ".join(texts) + "]" if any(text != "None" for text in texts) else "tensors[]"

        made, saved, kept = [], [], []
        if context is not None:
            made = [one if isinstance(one, capture.tensors.kind) and one.grad_fn is context else None for one in results]
            _, saved = self._saving.get(id(context), (None, ()))
        elif capture.regions.is_reentrant():  # where it is made again, with gradients
            made = [one if isinstance(one, capture.tensors.kind) and one.is_floating_point() else None for one in results]
            context, saved = next(iter(self._saving.values()), (None, ()))
        if context is not None:
            kept = [tensor for tensor in tensors_in(capture.tensors.kind, vars(context)) if tensor.is_cuda]
        function.made, function.saved = len(made), len(saved)
        text = f"step::function_leave({words(function.name)}, {values(given)}, {values(made)}, {values(saved)}, "
        function.kept = [capture.values.use(tensor) for tensor in kept]
        function.values = capture.values.count
        if function.number is not None:
            text += ("[" + ", ".join(f"%{capture.values.use(one)}" for one in kept) + "]" if kept else "tensors[]") + f", {function.number})"
        else:
            self.leaves[len(capture.now.lines)] = function
        capture.call(text)
        function.call = len(capture.now.calls) - 1
        if context is not None:
            setattr(context, NUMBER, len(self.all))
            self.all.append(function)

    # ---- backward

    def _backward(self, original, context, arguments, gradients):
        number = context.__dict__.get(NUMBER)
        capture = self.capture
        if number is None or not capture.running or self.all[number].body is not None or capture.now is not capture.program:
            return original(context, *arguments)
        function = self.all[number]
        if function.number is not None:
            return capture.backward.body(function.number, lambda: original(context, *arguments), gradients)
        before = capture.now, capture.paused, capture.thread, self.depth
        calls = capture.new_calls()
        body = function.body = calls.enclosing = Body(function, calls, capture.now)
        capture.now, capture.paused, capture.thread, self.depth = calls, 0, threading.get_ident(), 0
        guard = capture.torch._C._EnablePythonDispatcher()
        try:
            for i, gradient in enumerate(gradients):
                if gradient is not None:
                    body.add(("gradient", i), gradient)
            gradient = None
            if arguments is not gradients:  # a list that the backward may empty while it runs
                capture.step("clear_gradients()")
            result = original(context, *arguments)
            results = result if isinstance(result, tuple) else (result,)
            body.returns = [f"%{capture.values.use(one)}" if isinstance(one, capture.tensors.kind) else "None"
                            for one, is_tensor in zip(results, function.tensors) if is_tensor]
            return result
        finally:
            del guard
            calls.open = False
            capture.now, capture.paused, capture.thread, self.depth = before

    def _unpacked(self, context, unpack):
        capture = self.capture
        if not self._runs(context):
            return unpack(context)
        body = capture.now.enclosing
        capture.paused += 1
        try:
            with capture.dispatch.off():  # a checkpointed region is recomputed here
                tensors = unpack(context)
        finally:
            capture.paused -= 1
        for i, tensor in enumerate(tensors):
            if tensor is not None:
                body.add(("saved", i), tensor)
        return tensors

    def _cleared(self, context, clear):
        """A compiled backward gives back what it has saved while it runs."""
        if self._runs(context):
            self.capture.step("clear_saved()")
        return clear(context)

    def _runs(self, context):
        """Whether it is of the function whose backward is being written down."""
        body, number = self.capture.now.enclosing, context.__dict__.get(NUMBER)
        return body is not None and number is not None and body.function is self.all[number]

    # ---- the text

    def lines(self, index, begun):
        """The lines of a graph, and the line that takes it, of which the beginning is written."""
        function = self.leaves[index]
        if function.is_seen:
            begun += listed(function.saved_values) + ", "
            function.saved = len(function.saved_values)
        body = function.body
        if body is None and not function.is_seen:
            body = next((other.body for other in self.all if other.key == function.key and self._fits(function, other)), None)
        extra = [number for kind, number in body.inputs if kind == "kept" and number not in body.function.kept] if body else []
        kept = function.kept + extra
        begun += listed(kept)
        if body is None and function.is_seen:  # backward has not come to it
            return ["graph {", *["input _"] * (function.made + function.saved), *["return None"] * len(function.given),
                    f"}} as g{index}", f"{begun}, graph(g{index}))"]
        if body is None:
            return [begun + ", None)"]
        sources = [("gradient", i) for i in range(function.made)] + [("saved", i) for i in range(function.saved)]
        own = body.function.kept + extra
        sources += [("kept", number) for number in own]
        lines = ["graph {"] + [f"input {body.inputs.get(source, '_')}" for source in sources]
        lines += body.calls.lines_with_drops()
        lines += [f"return {value}" for value in body.returns]
        wrapped = ", True" if function.wrapped else ""
        return lines + [f"}} as g{index}", f"{begun}, graph(g{index}){wrapped})"]

    @staticmethod
    def _fits(function, other):
        """Whether another call's backward can stand for this one's: it reaches for nothing of its own surroundings."""
        body = other.body
        return body is not None and len(other.kept) == len(function.kept) and other.made == function.made and \
            other.saved == function.saved and all(kind != "kept" or number in other.kept for kind, number in body.inputs)


def listed(numbers):
    return "[" + ", ".join(f"%{number}" for number in numbers) + "]" if numbers else "tensors[]"


def tensors_in(tensor_class, tree, depth=0):
    if isinstance(tree, tensor_class):
        yield tree
    elif depth < 3 and isinstance(tree, (list, tuple)):
        for value in tree:
            yield from tensors_in(tensor_class, value, depth + 1)
    elif depth < 3 and isinstance(tree, dict):
        for value in tree.values():
            yield from tensors_in(tensor_class, value, depth + 1)
