"""Calls of modules: global forward hooks. Those of outermost modules are forwards."""
import threading

from metaprof_recorder.phases.training_step import FEWEST_CALLS


class ModuleCalls:
    def __init__(self, recorder):
        self._recorder, self._torch = recorder, recorder.torch
        self._local = threading.local()

    def install(self):
        module = self._torch.nn.modules.module
        hidden = {module.register_module_forward_pre_hook(self._enter).id,
                  module.register_module_forward_hook(self._leave, with_kwargs=True, always_call=True).id}
        self._hide(module, hidden)

    @staticmethod
    def _hide(module, hidden):
        """torch.compile asks whether there are global hooks, and warns of them: the program has none but its own."""
        def _has_any_global_hook():
            return any(hooks.keys() - hidden for name, hooks in vars(module).items() if name.startswith(("_global_forward", "_global_backward")) and isinstance(hooks, dict))
        if hasattr(module, "_has_any_global_hook"):
            module._has_any_global_hook = _has_any_global_hook

    def path(self):
        """Of the innermost module that this thread runs."""
        stack = self._stack()
        return stack[-1][0] if stack else ""

    def _stack(self):
        if not hasattr(self._local, "modules"):
            self._local.modules = []
        return self._local.modules

    # ---- beginnings

    def _enter(self, module, arguments):
        recorder = self._recorder
        if recorder.finished or self._torch.compiler.is_compiling():
            return
        stack = self._stack()
        if not stack:
            self._forward_begins(module, arguments)
        path = recorder.modules.path(module)
        if path is None:
            path = stack[-1][0] if stack else ""
        stack.append((path, recorder.history.enter(path)))
        if recorder.capture:
            recorder.capture.enter(path)

    def _forward_begins(self, module, arguments):
        recorder, phases = self._recorder, self._recorder.phases
        path = recorder.modules.name(module)
        if recorder.mine():
            recorder.fixes.enter(module)
        # Parametrizations call modules when they are made, which is often before anything is on a device.
        if recorder.mine() and (phases.phase != "setup" or self._torch.cuda.is_initialized()):
            recorder.history.resume()
            grad = self._torch.is_grad_enabled()
            new_step = phases.forward_begins(grad, path or type(module).__name__, not grad and recorder.trained.has(module))
            if phases.calls == FEWEST_CALLS:
                recorder.calls_line = recorder.sources.of_stack()[0]
            if new_step or not phases.trains:
                recorder.after_step()
        if recorder.mine() and recorder.history.running and not self._torch.jit.is_tracing():
            recorder.tags.model(module, path, recorder.cut)
            recorder.tags.inputs(arguments, recorder.cut)

    # ---- ends

    def _leave(self, module, arguments, *rest):
        """`rest`: named arguments and the result; the latter alone where the module has raised an error."""
        recorder, stack = self._recorder, self._stack()
        if self._torch.compiler.is_compiling() or not stack:
            return
        recorder.history.leave(stack.pop()[1])
        if recorder.capture:
            recorder.capture.leave(arguments, rest[0] if len(rest) == 2 else {})
        if not stack:
            self._forward_ends(module, arguments, rest)

    def _forward_ends(self, module, arguments, rest):
        recorder = self._recorder
        if recorder.mine():
            recorder.fixes.leave(rest[-1] if len(rest) == 2 else None)
        with recorder.peaks.given(f"what {type(module).__name__} returns", rest[-1] if len(rest) == 2 else None):
            recorder.observe("forward_ends", 0 if self._torch.is_grad_enabled() else self._length_of(arguments, rest))
        if recorder.ready and recorder.mine() and not self._torch.jit.is_tracing():  # a tracer's sizes are tensors
            recorder.models.called(module, arguments, rest[0] if len(rest) == 2 else {})
        if len(rest) == 2 and recorder.mine() and recorder.history.running and not recorder.phases.trains and not self._torch.jit.is_tracing():
            recorder.tags.results(rest[1], recorder.cut)

    def _length_of(self, arguments, rest):
        """Of the sequences of whole numbers, [batch, length], that a module was called with; 0: there are none."""
        for value in (*arguments, *(rest[0].values() if len(rest) == 2 else ())):
            if isinstance(value, self._torch.Tensor) and value.dtype == self._torch.int64 and value.dim() == 2:
                return int(value.shape[1])
        return 0
