"""The events of torch's profiler in the order in which they happened: what was nested by time as beginnings and ends."""
import bisect
import ctypes
import sys

from metaprof_recorder.requests.items import Begin, End, Memory

MODULE, CUT = "metaprof module ", "metaprof cut "
NEVER = 1 << 63  # later than all times


def _kind(name):
    if name.startswith("autograd::engine::evaluate_function: "):
        return "node"
    if name.startswith(MODULE):
        return "module"
    if name.startswith(CUT):
        return "cut"
    return "operator" if "::" in name and not name.startswith("torch::autograd::") and " " not in name else "other"


def _give_back_none():
    """Where a tensor has no memory PyTorch gives None without a reference of its own (strong_pointer_type_caster of torch/csrc/autograd/init.cpp): each time None has one
    less, and where none is left Python aborts. From Python 3.12 on None has no count."""
    if sys.version_info < (3, 12):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(None))


def _inputs(fields):
    found = []
    for value in fields.inputs:
        pointer = getattr(value, "storage_data_ptr", 0)
        if pointer is None:
            _give_back_none()
        elif pointer:
            found.append((value.dtype, value.sizes, value.device.type, pointer))
    return found


class Node:
    """An event of the profiler, and those inside it by time. One that had not ended when the profiler did has no end."""
    __slots__ = ("event", "begin", "end", "children")

    def __init__(self, event):
        self.event, self.begin, self.end = event, event.start_time_ns, event.end_time_ns
        if self.end < self.begin:
            self.end = NEVER
        self.children = []

    def __lt__(self, other):
        return self.begin < other.begin


def nested(roots):
    """The profiler's tree, with every event inside what was open when it began.

    What autograd's thread does the profiler puts into whatever was open when that thread was first seen, even after its end: all
    backwards of a program whose first one was called within an optimizer's step (LBFGS) would stand in that step."""
    tree, late = [], []
    waiting = [(tree, None, roots)]
    while waiting:
        place, end, events = waiting.pop()
        for event in events:
            node = Node(event)
            (late if end is not None and node.begin > end else place).append(node)
            waiting.append((node.children, node.end, event.children))
        place.sort()
    places = [(_around(node, tree), node) for node in late]
    for place, node in places:
        place.append(node)
    for place in {id(place): place for place, _ in places}.values():
        place.sort()
    return tree


def _around(node, tree):
    """The children of the innermost event that is open when the node begins."""
    while True:
        index = bisect.bisect_right(tree, node) - 1
        if index < 0 or tree[index].end <= node.begin:
            return tree
        tree = tree[index].children


def ends_open(roots):
    """Whether a range that is not a module's was open when the profiler ended."""
    return any(event.end_time_ns < event.start_time_ns and (_kind(event.name) != "module" or ends_open(event.children)) for event in roots)


def in_order(roots, twice=False):
    """A profiler's tree as a list of Begin, End and Memory of CUDA devices, in the order in which they happened. `twice`: a dispatch mode calls each operator
    again, and the profiler sees one within the other (values/); they are one."""
    items = []
    stack = [(None, iter(nested(roots)), None)]
    while stack:
        around, inner, around_name = stack[-1]
        node = next(inner, None)
        if node is None:
            stack.pop()
            if around is not None:
                items.append(End(around.end))
            continue
        event = node.event
        fields = event.extra_fields
        if hasattr(fields, "alloc_size"):
            if fields.device.type == "cuda":
                items.append(Memory(fields.ptr, fields.alloc_size, fields.device.index or 0, node.begin))
        elif hasattr(fields, "sequence_number"):
            kind = _kind(event.name)
            name = event.name.partition(": ")[2] if kind == "node" else event.name
            if twice and kind == "operator" and name == around_name:
                stack.append((None, iter(node.children), None))
                continue
            items.append(Begin(name, kind, fields.sequence_number, _inputs(fields) if kind == "operator" else (), node.begin))
            stack.append((node, iter(node.children), name if kind == "operator" else None))
        # of other kinds of events (Python calls, garbage collection) there are none with this configuration
    return items
