"""What autograd keeps of a forward, as the graph of its result says it: where no backward follows, nothing else tells.

A node of C++ has what it saved in attributes `_saved_…`, one of a Python function in `saved_tensors`. To ask for it calls the hooks by which
a program packs what is saved; where a program has ever used such hooks, nobody asks.
"""
import functools


class Node:
    """As the profiler's items are: `time` tells nodes apart that have one number."""
    __slots__ = ("name", "sequence", "time")

    def __init__(self, name, sequence):
        self.name, self.sequence, self.time = name, sequence, 0


class Kept:
    __slots__ = ("node", "tensor")

    def __init__(self, node, tensor):
        self.node, self.tensor = node, tensor


class Graphs:
    def __init__(self, torch):
        self._torch = torch
        self._packs = False       # the program packs what is saved
        self._attributes = {}     # type of a node -> names

    def install(self):
        autograd = self._torch._C._autograd
        original = autograd._push_saved_tensors_default_hooks

        @functools.wraps(original)
        def push(*hooks):
            self._packs = True
            return original(*hooks)

        autograd._push_saved_tensors_default_hooks = push

    def kept(self, results, seen=None):
        """What the nodes keep that lead to these tensors, the earliest node of the forward first. `seen`: nodes that are left out; these are added."""
        if self._packs:
            return []
        found = [kept for node in self._nodes(results, set() if seen is None else seen) for kept in self._of_node(node)]
        return sorted(found, key=lambda kept: kept.node.sequence)

    @staticmethod
    def _nodes(results, seen):
        open_ = [tensor.grad_fn for tensor in results]
        while open_:
            node = open_.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            yield node
            open_ += [following for following, _ in node.next_functions]

    def _of_node(self, node):
        kind = type(node)
        if kind not in self._attributes:
            self._attributes[kind] = [name for name in dir(kind) if name.startswith("_saved_") or name == "saved_tensors"]
        of_graph = Node(node.name(), node._sequence_nr())
        for attribute in self._attributes[kind]:
            try:
                value = getattr(node, attribute)
            except RuntimeError:  # it was changed since, or freed
                continue
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, self._torch.Tensor):
                    yield Kept(of_graph, tensor)
