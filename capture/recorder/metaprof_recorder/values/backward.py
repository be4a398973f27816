"""What a backward computes is not seen, and what it writes is not known afterwards.

Its engine adds one gradient to another in place where nobody else holds them. Since PyTorch 2.10 a Python object counts as somebody, and a call that is
seen makes objects of its tensors: the step would take other memory. What runs in Python within a backward is seen all the same: the backward
of a custom function, a region that a checkpoint computes again, a hook on a tensor, an optimizer's step in a hook. Its tensors have their objects
anyway. `nonzero` is seen, too: it counts the elements of a mask where the gradient of `x[mask]` is put back, and no gradient is added to a mask.
"""
import functools


class Backward:
    """`hook`: who sees calls. `storages`: what is known."""

    def __init__(self, torch, hook, storages):
        self._torch, self._hook, self._storages = torch, hook, storages

    def install(self):
        torch = self._torch
        graph, functions = torch.autograd.graph, torch.autograd.function.BackwardCFunction
        run = self._around_engine(graph._engine_run_backward)
        for module in (torch.autograd, graph):
            module._engine_run_backward = run
        functions.apply = self._seen(functions.apply)
        made = graph.saved_tensors_hooks.__init__

        @functools.wraps(made)
        def hooks(self_, pack_hook, unpack_hook):
            made(self_, pack_hook, self._seen(unpack_hook))

        graph.saved_tensors_hooks.__init__ = hooks
        for name in ("register_hook", "register_post_accumulate_grad_hook"):
            setattr(torch.Tensor, name, self._registering(getattr(torch.Tensor, name)))
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        within = []  # whether each step that runs was called where nothing is seen
        register_optimizer_step_pre_hook(lambda *_: (within.append(not self._hook.watches), self._hook.watch(True)) and None)
        register_optimizer_step_post_hook(lambda *_: self._hook.watch(not within.pop()))

    def _seen(self, function):
        """The function, whose calls are seen."""
        @functools.wraps(function)
        def call(*arguments, **options):
            if self._hook.watches or not self._hook.begun:
                return function(*arguments, **options)
            self._hook.watch(True)
            try:
                return function(*arguments, **options)
            finally:
                self._hook.watch(False)

        return call

    def _registering(self, register):
        @functools.wraps(register)
        def registered(tensor, hook):
            return register(tensor, self._seen(hook) if callable(hook) else hook)

        return registered

    def _around_engine(self, original):
        @functools.wraps(original)
        def run(tensors, *arguments, **options):
            if not self._hook.watches:
                return original(tensors, *arguments, **options)
            leaves = _leaves(tensors)
            self._hook.watch(False)
            self._hook.watch_sizes(True)
            try:
                return original(tensors, *arguments, **options)
            finally:
                self._hook.watch_sizes(False)
                self._hook.watch(True)
                for leaf in leaves:
                    if leaf.grad is not None and leaf.grad.is_cuda and leaf.grad.layout == self._torch.strided and type(leaf.grad) is self._torch.Tensor:
                        self._storages.put(leaf.grad, None)

        return run


def _leaves(tensors):
    """The tensors whose gradients a backward adds to."""
    waiting, seen, found = [edge.node if hasattr(edge, "node") else edge.grad_fn for edge in tensors], [], []  # torch.autograd.graph.GradientEdge
    known = set()
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in known:
            continue
        known.add(id(node))
        seen.append(node)  # as long as it is held its id is its own
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [inner for inner, _ in node.next_functions]
    return found
