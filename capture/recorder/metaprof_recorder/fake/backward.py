"""A backward in the place of the engine's, which needs a device: gradients without data, and what the program's own functions and hooks call."""


class Engine:
    """`living()`: tensors that the program holds, among others."""

    def __init__(self, torch, living):
        self._torch, self._living = torch, living
        self.hooks = []  # (node, which of its outputs, hook) of tensors that are no leaves

    def run(self, roots, gradients=(), retain=False, create=False, inputs=(), allow_unreachable=False, accumulate_grad=False):
        """As torch.autograd.graph._engine_run_backward. Within a capture, which does not see what is called here but custom functions."""
        torch = self._torch
        order = _order([_node(root) for root in roots])
        reached = {(id(_node(root)), root.output_nr) for root in roots if _node(root) is not None}
        wanted = {id(_node(one)): one for one in inputs}
        for node in order:
            for owner, number, hook in self.hooks:
                if owner is node and (id(node), number) in reached:
                    hook(self._empty(node._input_metadata[number]))
            if hasattr(node, "_forward_cls"):
                self._call(node, reached)
            reached.update((id(following), number) for following, number in node.next_functions if following is not None)
            if hasattr(node, "variable") and accumulate_grad and (not inputs or id(node) in wanted):
                self._accumulate(node.variable)
        results = tuple(self._gradient(one, roots, create) for one in inputs) if not accumulate_grad else ()
        if not retain and not create:
            self._free(order)
        return results

    def _free(self, order):
        """What the graph has saved goes. No function does that to a graph; it goes with the graph, which the tensors hold that were made by it."""
        nodes = {id(node) for node in order}
        self.hooks = [row for row in self.hooks if id(row[0]) not in nodes]
        for tensor in self._living():
            if tensor.grad_fn is not None and id(tensor.grad_fn) in nodes and not tensor._is_view():
                tensor.detach_().requires_grad_()

    def _call(self, node, reached):
        """A custom function's backward."""
        torch = self._torch
        gradients = [self._empty(one) if (id(node), i) in reached else None for i, one in enumerate(node._input_metadata)]
        with torch.set_grad_enabled(False):
            node.apply(*gradients)

    def _empty(self, metadata):
        return self._torch.empty(tuple(metadata.shape), dtype=metadata.dtype, device="cuda")

    def _accumulate(self, variable):
        torch = self._torch
        with torch.no_grad():
            gradient = torch.empty_like(variable)
        for hook in (variable._backward_hooks or {}).values():
            changed = hook(gradient)
            gradient = gradient if changed is None else changed
        if _grad_of(torch, variable) is None:
            torch._C.TensorBase.grad.__set__(variable, gradient)
        for hook in (getattr(variable, "_post_accumulate_grad_hooks", None) or {}).values():
            hook(variable)

    def _gradient(self, tensor, roots, create):
        torch = self._torch
        with torch.no_grad():
            gradient = torch.empty_like(tensor)
        if create:  # it depends on all that the roots depend on
            with torch.enable_grad():
                gradient = gradient + sum(root.sum() for root in roots).to(gradient.dtype) * 0
        return gradient


def _grad_of(torch, tensor):
    return torch._C.TensorBase.grad.__get__(tensor)


def _node(tensor):
    return tensor.grad_fn if tensor.grad_fn is not None else _leaf(tensor)


def _leaf(tensor):
    if not tensor.requires_grad:
        return None
    return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def _order(roots):
    """Nodes as the engine comes to them: by their numbers, the latest first."""
    found, waiting = {}, [root for root in roots if root is not None]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node  # as long as it is held its id is its own
            waiting += [following for following, _ in node.next_functions if following is not None]
    return sorted(found.values(), key=lambda node: node._sequence_nr(), reverse=True)
