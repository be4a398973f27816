"""Backward: one call of the program, and behind it what the program's own hooks call while it runs.

A hook is numbered where it is registered (`step::hook`). Each time that it runs and calls something, its calls stand behind the backward's,
between `step::hook_enter` and `step::hook_leave`, up to `step::backward_leave`. So stand hooks that keep a gradient which they are given. Hooks before
nodes (nodes.py) and those that are registered elsewhere (after nodes; callbacks at the end of a backward) have numbers without a `step::hook`: the engine
runs what the latter call when the backward ends.
"""
import functools
import sys
import threading



class Backward:
    def __init__(self, capture):
        self.capture = capture
        self._hooks = 0
        self._line = None   # of the backward that runs, among the program's
        self._roots = ()    # of that backward
        self._busy = False  # a hook runs
        self._bodies = 0

    def install(self):
        torch = self.capture.torch
        run = self._around_engine(torch.autograd.graph._engine_run_backward)
        for owner in (torch.autograd.graph, torch.autograd):
            self.capture.patches.set(owner, "_engine_run_backward", run)
        self._watch(torch.Tensor, "register_hook", "gradient")
        self._watch(torch.Tensor, "register_post_accumulate_grad_hook", "accumulated")
        self._watch_modules(torch.utils.hooks.BackwardHook)
        self.capture.patches.set(torch.autograd.Variable, "_execution_engine", Engine(torch.autograd.Variable._execution_engine, self))

    def number(self):
        self._hooks += 1
        return self._hooks - 1

    # ---- registration

    def _watch(self, owner, name, kind):
        original = getattr(owner, name)

        @functools.wraps(original)
        def register(tensor, hook, *arguments, **options):
            capture = self.capture
            number = self.number()
            if capture.active() and not capture.regions.is_open() and tensor.requires_grad and capture.values.concern([tensor]):
                capture.step(f'hook({number}, "{kind}", %{capture.values.use(tensor)})')
            seen = self.seen(number, hook, kind == "gradient")
            capture.device.hook_is_registered(tensor, seen)
            return original(tensor, seen, *arguments, **options)

        self.capture.patches.set(owner, name, register)

    def seen(self, number, hook, takes_gradient=False):
        """The hook, whose calls are written down when it runs within a backward."""
        @functools.wraps(hook)
        def run(*arguments, **options):
            return self.body(number, lambda: hook(*arguments, **options), arguments[:1] if takes_gradient else ())

        return run

    def _watch_modules(self, owner):
        original = owner.__init__

        @functools.wraps(original)
        def made(hooks, module, user_hooks, user_pre_hooks):
            number = self.number()
            if not self.capture.device.calls_hooks_of_modules:
                self.capture.warn("hooks on the backward of modules: what they call is not in the program")
            seen = [[self.seen(number, hook) for hook in some] for some in (user_hooks, user_pre_hooks)]
            original(hooks, module, *seen)

        self.capture.patches.set(owner, "__init__", made)

    # ---- the engine

    def _around_engine(self, original):
        capture = self.capture

        def values(tensors):
            if not tensors:
                return "tensors[]"
            return "[" + ", ".join(map(value, tensors)) + "]"

        def value(tensor):
            if isinstance(tensor, capture.tensors.kind):
                return f"%{capture.values.use(tensor)}"
            return "None" if tensor is None else f"%{capture.nodes.use(tensor)}"

        @functools.wraps(original)
        def run(roots, gradients=(), retain=False, create=False, inputs=(), *rest, **options):
            arguments = (roots, gradients, retain, create, inputs, *rest)
            if capture.running and not capture.paused and capture.transforms.level() is not None:
                with capture.transforms.engine(sys._getframe(1)):
                    return original(*arguments, **options)
            if not capture.active():
                return capture.device.backward(original, arguments, options)
            accumulate = options.get("accumulate_grad", rest[1] if len(rest) > 1 else False)
            text = f"{values(roots)}, {values(gradients)}, {bool(retain)}, {bool(create)}, {values(inputs)}, {bool(accumulate)}"
            return self._run(text, roots, accumulate, lambda: capture.device.backward(original, arguments, options))

        return run

    def _run(self, text, roots, accumulate, engine):
        capture = self.capture
        calls = capture.now
        before = self._line, self._bodies, self._roots
        line = len(calls.lines)
        capture.call(f"step::backward({text})")
        if calls is capture.program:
            self._line, self._bodies, self._roots = line, 0, roots
        capture.paused += 1
        try:
            with capture.dispatch.off():
                result = engine()
        finally:
            capture.nested.restore()
            capture.paused -= 1
            if calls is capture.program and self._bodies:
                text += ", True"
                calls.lines[line] = f"step::backward({text})"
                capture.values.drop_held()
                capture.call("step::backward_leave()")
            self._line, self._bodies, self._roots = before
        if not accumulate:
            made = ", ".join(capture.values.made(tensor) for tensor in result)
            calls.lines[line] = f"[{made}] = step::backward({text})"
            for tensor in result:
                if isinstance(tensor, capture.tensors.kind):
                    calls.names[id(tensor)].last = len(calls.calls) - 1
        return result

    def body(self, number, function, gradients=(), node=None):
        """Runs what belongs to a hook of this number; what it returns replaces the gradients, if it is a tensor or has some. `node`: before which it runs."""
        capture = self.capture
        calls = capture.now
        if self._line is None or self._busy or not capture.running or calls is not capture.program:
            return function()
        before = capture.paused, capture.thread, calls.grad, calls.inference, calls.stream, calls.engine
        self._busy, capture.paused, capture.thread, calls.engine = True, 0, threading.get_ident(), False
        calls.grad = capture.torch.is_grad_enabled()
        guard = capture.torch._C._EnablePythonDispatcher()
        try:
            given = Given(capture, gradients)
            capture.values.drop_held()
            capture.call(given.enter(f"step::hook_enter({number})"))
            entered = len(calls.lines)
            given.count()
            result = function()
            capture.values.drop_held()
            results = [one for one in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(one, capture.tensors.kind)]
            kept = given.kept(results)
            replaced = any(one is not other for one, other in zip(results, given.tensors)) or (results and not given.tensors)
            if len(calls.lines) == entered and not replaced and not any(kept):
                self._forget(given.tensors, given.known)
            else:
                self._bodies += 1
                place = capture.nodes.enter(number, node, self._roots) if node is not None else None
                if place:
                    calls.lines[entered - 1] = given.enter(*place[::-1])
                values = "[" + ", ".join(f"%{capture.values.use(one)}" for one in results) + "]" if replaced else "None"
                capture.call(f"step::hook_leave({number}, {values})")
                for one, was_known, is_kept in zip(given.tensors, given.known, kept):
                    if not was_known and not is_kept:
                        self._let_go(one)
            return result
        finally:
            del guard
            self._busy = False
            capture.paused, capture.thread, calls.grad, calls.inference, calls.stream, calls.engine = before

    def _let_go(self, gradient):
        """The hook has kept no handle of what it was given. A later hook may be given the same object, anew."""
        calls = self.capture.now
        name = calls.names.pop(id(gradient))
        name.gone = len(calls.calls) - 1
        calls.drops.setdefault(name.gone, []).extend(name.numbers)

    def _forget(self, gradients, known):
        """The hook called nothing: nothing of it stands in the program."""
        calls = self.capture.now
        for one, was_known in zip(gradients, known):
            name = calls.names[id(one)]
            name.numbers.pop()
            name.last = min(name.last, len(calls.calls) - 2)
            if not was_known:
                del calls.names[id(one)]
        calls.lines.pop()
        last = len(calls.calls) - 1
        calls.calls.pop()
        if last in calls.drops:
            calls.drops.setdefault(last - 1, []).extend(calls.drops.pop(last))


class Given:
    """The gradients that a hook is given."""

    def __init__(self, capture, gradients):
        kind = capture.tensors.kind
        self._all = gradients
        self.tensors = [one for one in gradients if isinstance(one, kind)]
        self.known = [id(one) in capture.now.names for one in self.tensors]
        self._made = [capture.values.made(one) for one in gradients]
        self._before = ()

    def enter(self, call, edge=None):
        """The line that begins the hook's calls."""
        made = self._made + [edge] if edge else self._made if self.tensors else []
        return f"{', '.join(made)}{' = ' if made else ''}{call}"

    def count(self):
        self._before = self._counts()

    def kept(self, results):
        """Which of the tensors the hook has kept since they were counted, or what it was given them in. `results`: what it has returned, and the list itself."""
        whole, *each = [now > before for now, before in zip(self._counts(results), self._before)]
        return [whole or one for one in each]

    def _counts(self, results=()):
        return [sys.getrefcount(self._all)] + [sys.getrefcount(one) - 2 * sum(one is other for other in results) for one in self.tensors]


class Engine:
    """In the place of torch's, which is no class that could be changed: callbacks at the end of a backward are seen."""

    def __init__(self, engine, backward):
        self._engine = engine
        self._backward = backward

    def queue_callback(self, callback):
        self._engine.queue_callback(self._backward.seen(self._backward.number(), callback))

    def __getattr__(self, name):
        return getattr(self._engine, name)
