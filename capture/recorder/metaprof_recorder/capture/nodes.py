"""Nodes of autograd's graph that the program takes hold of: those before which its hooks run, and those at which a backward begins.

A backward can be run in parts. The first ends at the inputs, and hooks before some nodes keep the gradients that come there. The second begins
at these nodes, with these gradients, and gives those of the weights. Schedules of pipelines without bubbles do this.

A node has no name in the program. A hook before it says how the roots of the backward lead to it. From then on the edge to the node is a value, as it is
if the program asks for the edge of a tensor. The value lives as long as the node in C++.
"""
import collections
import functools

from metaprof_recorder.text.arguments import words

EDGES = "_metaprof_edges"  # in the metadata of a node: its Edges by their numbers
OWN = "_metaprof_own"      # attribute of a hook of the capture's own


def own(hook):
    """A hook that is no part of the program."""
    setattr(hook, OWN, True)
    return hook


class Edge:
    """The value of an edge. The metadata of its node hold it, and nobody else does: it goes with the node."""

    def __init__(self, capture, number):
        self._capture, self.calls = capture, capture.now
        self.number, self.last = number, len(capture.now.calls) - 1

    def __del__(self):
        capture, calls = self._capture, self.calls
        if capture.running and calls.open:
            within_backward = capture.paused or calls is not capture.now
            calls.drops.setdefault(self.last if within_backward else len(calls.calls) - 1, []).append(self.number)


class Nodes:
    def __init__(self, capture):
        self._capture = capture
        self._running = getattr(capture.torch._C, "_current_autograd_node", lambda: None)

    def install(self):
        torch, patch = self._capture.torch, self._capture.patches.set
        # C++ asks it for both kinds of hooks on nodes.
        owner = torch.autograd.function._HookMixin
        register = owner._register_hook
        patch(owner, "_register_hook", staticmethod(lambda hooks, hook: register(hooks, self._seen(hook))))
        edge_of = torch.autograd.graph.get_gradient_edge

        @functools.wraps(edge_of)
        def seen(tensor):
            edge = edge_of(tensor)
            if self._capture.concerns(tensor) and not hasattr(edge.node, "variable"):
                self._name(edge.node, edge.output_nr, f"step::edge(%{self._capture.values.use(tensor)})")
            return edge

        patch(torch.autograd.graph, "get_gradient_edge", seen)

    def use(self, edge):
        """The number of a value from which the edge can be taken."""
        capture, variable = self._capture, getattr(edge.node, "variable", None)
        if variable is not None:
            return capture.values.use(variable)
        known = edge.node.metadata.get(EDGES, {}).get(edge.output_nr)
        if known is not None and known.calls is capture.now:
            capture.now.used.append(known)
            return known.number
        for tensor in capture.values.living():
            if tensor.grad_fn is edge.node and tensor.output_nr == edge.output_nr:
                return capture.values.use(tensor)
        capture.refuse("it goes backward from a node of autograd's graph (GradientEdge) that no tensor and no hook of it has named")
        return 0

    def enter(self, hook, node, roots):
        """What begins the calls of a hook that runs before this node, and the value of its edge; None: the roots do not lead to it."""
        found = _way(node, roots)
        if found is None:
            return None
        root, path = found
        call = f"step::hook_enter({hook}, {words(node.name())}, {root}, {path})"
        known = node.metadata.setdefault(EDGES, {})
        if 0 in known:
            return "_", call
        known[0] = Edge(self._capture, self._capture.values.next_number())
        return f"%{known[0].number}", call

    def _seen(self, hook):
        """A hook on a node. If it runs before the node, its calls are written down, and what it keeps of the gradients."""
        if hasattr(hook, OWN):
            return hook
        backward = self._capture.backward
        number = backward.number()

        @functools.wraps(hook)
        def run(*arguments):
            if len(arguments) != 1 or not isinstance(arguments[0], tuple):
                return hook(*arguments)
            return backward.body(number, lambda: hook(*arguments), arguments[0], self._running())

        return run

    def _name(self, node, output, call):
        known = node.metadata.setdefault(EDGES, {})
        if output not in known:
            number = self._capture.values.next_number()
            self._capture.values.drop_held()
            self._capture.call(f"%{number} = {call}")
            known[output] = Edge(self._capture, number)


def _way(node, roots):
    """The shortest way to a node: the number of a root, and the numbers of edges."""
    firsts = [(i, getattr(root, "node", None) or root.grad_fn) for i, root in enumerate(roots)]
    reached = {first: (None, i) for i, first in reversed(firsts) if first is not None}  # node -> (the one before it, the edge)
    waiting = collections.deque(reached)
    while waiting and node not in reached:
        one = waiting.popleft()
        for i, (following, _) in enumerate(one.next_functions):
            if following is not None and following not in reached:
                reached[following] = one, i
                waiting.append(following)
    if node not in reached:
        return None
    path, (before, edge) = [], reached[node]
    while before is not None:
        path.append(edge)
        before, edge = reached[before]
    return edge, path[::-1]
