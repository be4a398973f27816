"""Who holds what is alive on the device, in the program's words: the variable of a running function that leads to it.

From each variable all is followed that it refers to: containers, attributes, closures, modules, optimizers, and autograd's graph with what its nodes
have saved. What several variables lead to belongs to the first: functions are gone through from the outermost to the innermost. What a module has
besides its parameters, buffers and modules (hooks, lists of a wrapper) belongs to it only if no variable of the same function leads there otherwise.

No code of the program is called, and nothing is kept: objects are asked for what they refer to as the garbage collector asks them.
"""
import gc
import sys
import types
from collections import deque
from itertools import groupby

from metaprof_recorder.program.variables import attributes_of, variables_of
from metaprof_recorder.text.names import dtype_word

SIMPLE = (int, float, complex, str, bytes, bool, type(None), type, types.ModuleType, types.CodeType, types.FrameType, types.BuiltinFunctionType, range, slice)
MOST_OBJECTS = 300_000   # that are looked at
MOST_ELEMENTS = 10_000   # of one container
MOST_ATTRIBUTES = 3      # that a name is made of
BY_GRAPH = ", by its graph"
HANDLED = ", kept by the exception that is handled"


class Holder:
    """`category`: parameter, gradient, …; None: not known. `text`: "losses (train.py:31 in evaluate), a list of 20"."""
    __slots__ = ("category", "name", "text", "dtype", "shape")

    def __init__(self, category, name, way):
        self.category, self.name, self.text = category, name, way.text()
        self.dtype = self.shape = None  # of the tensor that was found


class _Way:
    """How an object is reached: the variable and attributes, where that variable is, what the last of them is."""
    __slots__ = ("name", "place", "kind", "graph", "attributes")

    def __init__(self, name, place, kind, graph="", attributes=0):
        self.name, self.place, self.kind, self.graph, self.attributes = name, place, kind, graph, attributes

    def to(self, attribute, value):
        if self.attributes == MOST_ATTRIBUTES:
            return self
        return _Way(f"{self.name}.{attribute}", self.place, _described(value), self.graph, self.attributes + 1)

    def by_graph(self):
        return _Way(self.name, self.place, self.kind, BY_GRAPH, self.attributes)

    def text(self):
        return f"{self.name} ({self.place}), {self.kind}{self.graph}"


def _described(value):
    kind = type(value)
    if issubclass(kind, (list, tuple, dict, set, deque)):
        return f"a {kind.__name__} of {len(value)}"
    return f"{'an' if kind.__name__[:1] in 'AEIOUaeio' else 'a'} {kind.__name__}"


class Holders:
    """One answer: `found` is filled by `look`: (address, device) of a storage -> Holder."""

    def __init__(self, torch, sources, names, graphs):
        """`names`: {id of a parameter: its name}. `graphs`: see saved_tensors.py; None while a backward works on them."""
        self._torch, self._sources, self._names, self._graphs = torch, sources, names, graphs
        self._seen, self._nodes, self._kept = set(), set(), []
        self._later = deque()  # what is followed after the other variables of the function
        self._parameter, self._module, self._optimizer = torch.nn.Parameter, torch.nn.Module, torch.optim.Optimizer
        self._gradient_of = torch._C.TensorBase.grad.__get__
        self.found = {}

    def look(self, frame, given=None):
        """`frame`: the innermost of the thread that the program runs in. `given`: (name, value) of another root, which comes last."""
        collects = gc.isenabled()
        gc.disable()  # the program's own garbage goes when it would
        try:
            roots = list(self._roots(frame))
            for _, of_function in groupby(roots, lambda root: root[1]):
                for name, place, value in of_function:
                    self._follow((value, _Way(name, place, _described(value))))
                self._follow_later()
            for name, value in (given,) if given else ():
                self._follow((value, _Way(name, self._sources.of_stack()[0], _described(value))))
                self._follow_later()
        finally:
            self._kept.clear()
            self._nodes.clear()
            if collects:
                gc.enable()
        return self.found

    # ---- where it begins

    def _roots(self, frame):
        frames = []
        while frame is not None:
            frames.append((frame, frame.f_lineno, ""))
            frame = frame.f_back
        frames.reverse()
        error = sys.exc_info()[1]
        while error is not None:
            traceback = error.__traceback__
            while traceback is not None:
                frames.append((traceback.tb_frame, traceback.tb_lineno, HANDLED))
                traceback = traceback.tb_next
            error = error.__context__
        last = []
        for frame, line, why in frames:
            kind = self._sources.kind(frame.f_code.co_filename)
            if kind == 2:
                continue
            code = frame.f_code
            place = f"{self._sources.short(code.co_filename)}:{line}" + ("" if code.co_name == "<module>" else f" in {code.co_name}") + why
            for name, value in variables_of(frame):
                yield name, place, value
            if kind == 0:
                last += [(name, f"{code.co_filename}, of the module", value) for name, value in list(frame.f_globals.items())]
        yield from (root for root in last if not root[0].startswith("__"))

    # ---- what is followed

    def _follow_later(self):
        while self._later:
            self._follow(self._later.popleft())

    def _follow(self, root):
        waiting = deque([root])
        while waiting and len(self._seen) < MOST_OBJECTS:
            value, way = waiting.popleft()
            kind = type(value)
            if issubclass(kind, SIMPLE) or id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._kept.append(value)
            try:
                waiting.extend(self._next(value, kind, way))
            except Exception:  # noqa: BLE001 - an object may be anything; what it holds has no holder then
                continue

    def _next(self, value, kind, way):
        if issubclass(kind, self._torch.Tensor):
            return self._of_tensor(value, way)
        if issubclass(kind, dict):
            return [(element, way) for _, element in zip(range(MOST_ELEMENTS), list(dict.values(value)))] + [(key, way) for key in list(dict.keys(value))[:MOST_ELEMENTS]]
        if issubclass(kind, (list, tuple, set, frozenset, deque)):
            return [(element, way) for _, element in zip(range(MOST_ELEMENTS), value)] if kind.__iter__ in _ITERATORS else []
        if issubclass(kind, self._module):
            self._later.extend(self._besides_parts_of_module(value, way))
            return self._parts_of_module(value, way)
        if issubclass(kind, self._optimizer):
            return self._of_optimizer(value, way)
        if issubclass(kind, types.FunctionType):
            return [(cell, way) for cell in (value.__closure__ or ())] + [(value.__defaults__, way), (value.__kwdefaults__, way)]
        attributes = attributes_of(value)
        if attributes:
            return [(element, way.to(name, element)) for name, element in list(attributes.items()) if not issubclass(type(element), SIMPLE)]
        return [(element, way) for element in gc.get_referents(value)[:MOST_ELEMENTS]]

    def _parts_of_module(self, module, way):
        attributes = attributes_of(module)
        parts = [tensor for tensor in list((attributes.get("_parameters") or {}).values()) if tensor is not None]
        for key, tensor in list((attributes.get("_buffers") or {}).items()):
            if tensor is not None:
                self._put(tensor, Holder("buffer", key, way))
                parts.append(tensor)
        parts += list((attributes.get("_modules") or {}).values())
        return [(part, way) for part in parts]

    @staticmethod
    def _besides_parts_of_module(module, way):
        return [(element, way.to(name, element)) for name, element in list(attributes_of(module).items())
                if name not in ("_parameters", "_buffers", "_modules") and not issubclass(type(element), SIMPLE)]

    def _of_optimizer(self, optimizer, way):
        attributes = attributes_of(optimizer)
        for parameter, state in list((attributes.get("state") or {}).items()):
            name = self._names.get(id(parameter), "")
            for key, tensor in list(state.items()) if isinstance(state, dict) else ():
                if isinstance(tensor, self._torch.Tensor):
                    self._put(tensor, Holder("optimizer_state", f"{key} of {name}" if name else str(key), way))
        return [(element, way.to(name, element)) for name, element in list(attributes.items()) if not issubclass(type(element), SIMPLE)]

    def _of_tensor(self, tensor, way):
        is_parameter = issubclass(type(tensor), self._parameter)
        name = self._names.get(id(tensor), "")
        self._put(tensor, Holder("parameter" if is_parameter else None, name, way))
        found = []
        if tensor.is_leaf:
            gradient = self._gradient_of(tensor)
            if gradient is not None:
                self._put(gradient, Holder("gradient", name, way))
                found.append((gradient, way))
        elif tensor._is_view():  # asked for its node, a view that was written to makes another
            found.append((tensor._base, way))
        elif self._graphs:
            self._of_graph(tensor, way.by_graph())
        return found + [(element, way.to(name, element)) for name, element in list((attributes_of(tensor) or {}).items())]

    def _of_graph(self, tensor, way):
        for kept in self._graphs.kept([tensor], self._nodes):
            self._put(kept.tensor, Holder("activation", "", way))

    def _put(self, tensor, holder):
        tensor = getattr(tensor, "_local_tensor", tensor)
        if tensor.is_cuda:
            address = tensor.untyped_storage().data_ptr()
            if address and (address, tensor.device.index or 0) not in self.found:
                holder.dtype, holder.shape = dtype_word(tensor.dtype), [int(size) for size in tensor.shape]
                self.found[address, tensor.device.index or 0] = holder


def of_device(found, device):
    """{address: Holder} of one device."""
    return {address: holder for (address, on), holder in found.items() if on == device}


_ITERATORS = {kind.__iter__ for kind in (list, tuple, set, frozenset, deque)}
