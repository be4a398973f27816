"""Optimizers in a captured program: where their constructors and steps begin and end, and whose parameters they have."""
import threading
import weakref

from metaprof_recorder.text.arguments import words


class Optimizers:
    def __init__(self, capture):
        self._capture = capture
        self._depth = 0     # of constructors and steps that are at work
        self._numbers = weakref.WeakKeyDictionary()  # by optimizer

    def install(self):
        """Their steps; their constructors are told by who counts them as phases."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        later = self._capture.patches.later
        later(register_optimizer_step_pre_hook(lambda *_: self.begin()).remove)
        later(register_optimizer_step_post_hook(lambda optimizer, *_: self.end(optimizer, "step")).remove)

    def begin(self):
        """Its constructor or its step; what another one calls within is part of it."""
        if self._is_of_another_thread():
            return
        self._depth += 1
        if self._depth == 1:
            self._capture.step("optimizer_enter()")

    def end(self, optimizer, what):
        """`what`: "made" or "step"."""
        if self._is_of_another_thread():
            return
        capture = self._capture
        self._depth -= 1
        if self._depth or not capture.active():
            return
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        tensors = [tensor for group in getattr(optimizer, "param_groups", ()) for tensor in group["params"]]
        plain = bool(tensors) and all(type(tensor) in capture.tensors.plain for tensor in tensors)
        parameters = "[" + ", ".join(f"%{capture.values.use(tensor)}" for tensor in tensors) + "]" if plain else "None"
        kind = f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"
        capture.call(f"step::optimizer_leave({number}, {words(what)}, {words(kind)}, {parameters})")

    def _is_of_another_thread(self):
        return threading.get_ident() != self._capture.thread
