"""Transforms of torch.func (vmap, grad, jvp): the program has what the innermost of them calls on the tensors below their wrappers.

A transform takes a call on wrappers of tensors apart and calls operators again, one level lower. On the way down the Python dispatcher
stays on, so that each of these calls is seen; below the last level they are calls of plain tensors, as the program's own are.
"""
import contextlib
import threading

ALIASES = {  # what the dispatcher's table says of a kernel -> the key that it is registered for, if not for one of its own
    "math kernel": ("CompositeImplicitAutograd",),
    "nested kernel": ("CompositeImplicitAutogradNestedTensor",),
    "autograd kernel": ("Autograd",),
    "batched kernel": ("FuncTorchBatchedDecomposition",),
    "default backend kernel": ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"),
}


class Transforms:
    def __init__(self, torch, wrappers):
        self._torch = torch
        self.wrappers = wrappers
        self.level = torch._C._functorch.maybe_current_level  # None: no transform is at work
        self.depth = 0      # of calls on the way down
        self._numbers = None  # thread -> number of its next node of autograd when the program's last call had been made; None: no transform so far
        self._next_number = torch._C._autograd._get_sequence_nr
        self.frame = None   # of the program, where it calls an engine that runs on another thread
        keys = torch._C.DispatchKey
        self._keys = keys.__members__
        self._own = torch._C.DispatchKeySet(keys.PreDispatch) | torch._C.DispatchKeySet(keys.PythonDispatcher)
        self._tables = {}   # operator -> {name of a key: what the dispatcher's table says of its kernel}
        self._targets = {}  # (operator, keys) -> the key with whose kernel it goes on

    @contextlib.contextmanager
    def engine(self, frame):
        """While the engine runs for a transform, on a thread that has no frame of the program's."""
        before, self.frame = self.frame, frame
        try:
            yield
        finally:
            self.frame = before

    def call(self, overload, tensors, arguments, options):
        """Goes on below the key on which calls are seen; what is called there is seen again."""
        target = self.target(overload, tensors)
        if self._numbers is None:
            self._numbers = {threading.get_ident(): self._next_number()}
        self.depth += 1
        try:
            return overload._op_dk(target, *arguments, **options)
        finally:
            self.depth -= 1

    def target(self, overload, tensors, without=None):
        """The key with whose kernel a call of these tensors goes on; as if there were no keys `without`."""
        keys = self._keys_of(tensors)
        if without is not None:
            keys = keys - without
        known = overload.name(), keys.raw_repr()
        if known not in self._targets:
            self._targets[known] = self._target(known[0], keys)
        return self._targets[known]

    def write_nodes(self, capture):
        """A backward goes by the numbers of nodes, each thread's own; the nodes of wrappers have taken some since the last call."""
        if self._numbers is not None:
            others = self._next_number() - self._numbers.get(threading.get_ident(), 0)
            if others > 0:
                capture.modes.write()
                capture.add(f"step::nodes({others})")

    def note_nodes(self):
        if self._numbers is not None:
            self._numbers[threading.get_ident()] = self._next_number()

    def _keys_of(self, tensors):
        """As the dispatcher finds them (aten/src/ATen/core/dispatch/DispatchKeyExtractor.h)."""
        functions = self._torch._C
        keys = functions._dispatch_tls_local_include_set()
        for tensor in tensors:
            keys = keys | functions._dispatch_keys(tensor)
        return keys - functions._dispatch_tls_local_exclude_set() - self._own

    def _target(self, name, keys):
        """The first key that does not pass the operator on, or the one for which its kernel there is registered."""
        table = self._table(name)
        key = keys.highestPriorityTypeId()
        while table.get(self._name_of(key), "").startswith("fallthrough"):
            keys = keys.remove(key)
            key = keys.highestPriorityTypeId()
        has_kernel = self._torch._C._dispatch_has_kernel_for_dispatch_key
        if not has_kernel(name, key):
            kind = table.get(self._name_of(key), "").rpartition("[")[2].rstrip("]")
            for alias in ALIASES.get(kind, ()):
                if has_kernel(name, self._keys[alias]):
                    return self._keys[alias]
        return key

    def _name_of(self, key):
        """As tables have it: some keys have no name in Python."""
        return self._torch._C._dispatch_key_name(key)

    def _table(self, name):
        """No function tells which kernel a key has; the table as a text does."""
        if name not in self._tables:
            rows = (line.partition(": ") for line in self._torch._C._dispatch_dump_table(name).splitlines())
            self._tables[name] = {key: kernel for key, _, kernel in rows}
        return self._tables[name]
