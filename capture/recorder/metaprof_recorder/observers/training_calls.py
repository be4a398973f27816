"""Calls that train.

    backward         torch.autograd.backward and torch.autograd.grad, called through, and what prepares it
    optimizer steps  global step hooks; construction: the constructors of torch.optim, called through
    zero_grad        of Optimizer and of Module, called through
"""
import functools
import threading

from metaprof_recorder.process import process_exit
from metaprof_recorder.pytorch import devices
from metaprof_recorder.ranks import process_groups

GRACE_SECONDS = 10.0  # that a program has after its last step before it is ended


def with_derived(kind):
    """A class of optimizers and those that are derived from it."""
    return {kind}.union(*(with_derived(derived) for derived in kind.__subclasses__()))


class TrainingCalls:
    def __init__(self, recorder):
        self._recorder, self._torch = recorder, recorder.torch
        self._in_zero_grad = 0
        self._local = threading.local()

    def install(self):
        torch = self._torch
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
        for kind in with_derived(torch.optim.Optimizer):
            if "__init__" in kind.__dict__:
                kind.__init__ = self._around_constructor(kind.__init__)
            if "zero_grad" in kind.__dict__:
                kind.zero_grad = self._around_zero_grad(kind.zero_grad)

    def _announce(self, place, name, what):
        """Calls of a function are observed before they are made: what prepares the backward or the optimizer counts as its beginning."""
        original = getattr(place, name)

        @functools.wraps(original)
        def call(*arguments, **options):
            self._recorder.observe(what)
            return original(*arguments, **options)
        setattr(place, name, call)

    # ---- backward

    def _around_backward(self, original):
        recorder = self._recorder

        @functools.wraps(original)
        def call(*arguments, **options):
            counts = original.__name__ == "backward" or not options.get("create_graph")
            if not counts or self._is_traced() or not (recorder.mine() or recorder.follows()):
                return original(*arguments, **options)
            recorder.history.resume()
            with recorder.peaks.given("what backward is called of", arguments[0] if arguments else options.get("tensors", options.get("outputs"))):
                recorder.phases.backward_begins()
            recorder.in_backward += 1
            failures = recorder.out_of_memory.count
            try:
                return original(*arguments, **options)
            finally:
                recorder.in_backward -= 1
                if recorder.out_of_memory.count == failures:
                    recorder.phases.backward_ends()
                if recorder.history.running:
                    recorder.tags.gradients(recorder.cut)
        return call

    def _is_traced(self):
        """Whether a compiler calls, with tensors that are not the program's."""
        torch = self._torch
        return torch.compiler.is_compiling() or torch._guards.TracingContext.try_get() is not None or \
            torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None

    # ---- optimizers

    def _optimizer_begins(self):
        recorder = self._recorder
        if recorder.mine():
            recorder.history.resume()
            recorder.phases.optimizer_begins()

    def _optimizer_ends(self, optimizer):
        recorder = self._recorder
        if recorder.in_backward:
            recorder.phases.stepped = True
            return
        if devices.emulator() is not None:
            process_groups.wait_for_ranks()
        recorder.observe("optimizer_ends")
        if recorder.steps_done() <= recorder.detail_steps:
            recorder.trained.add(optimizer)
        if recorder.history.running:
            recorder.tags.optimizer(optimizer, recorder.cut)
        if recorder.steps and recorder.steps_done() >= recorder.steps:
            process_exit.end_soon(recorder, GRACE_SECONDS)

    def _around_constructor(self, original):
        recorder = self._recorder

        @functools.wraps(original)
        def call(optimizer, *arguments, **options):
            if getattr(self._local, "constructing", False) or not recorder.mine():
                return original(optimizer, *arguments, **options)
            self._local.constructing = True
            recorder.phases.constructor_begins()
            if recorder.capture:
                recorder.capture.optimizers.begin()
            try:
                return original(optimizer, *arguments, **options)
            finally:
                self._local.constructing = False
                if recorder.capture:
                    recorder.capture.optimizers.end(optimizer, "made")
                recorder.phases.constructor_ends()
                recorder.trained.add(optimizer)
        return call

    # ---- zero_grad

    def _around_zero_grad(self, original):
        recorder = self._recorder

        @functools.wraps(original)
        def call(*arguments, **options):
            if self._in_zero_grad or not recorder.mine():
                return original(*arguments, **options)
            self._in_zero_grad += 1
            recorder.phases.zero_grad_begins()
            try:
                return original(*arguments, **options)
            finally:
                self._in_zero_grad -= 1
                recorder.phases.zero_grad_ends()
        return call
