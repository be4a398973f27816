"""The values of a captured program: each tensor has a name as long as its Python object lives.

`drop` is written behind the last call before it died. An object that only autograd holds lives on: counts of references tell when the
program's own last handle went (refcounts.py). Where they cannot (PyTorch before 2.10, and tensors without gradients), it dies within a
backward, and is dropped behind the last call that used it.
"""
from metaprof_recorder.capture.calls import Name
from metaprof_recorder.capture.distributed import awaited, inner
from metaprof_recorder.capture.nested import is_nested
from metaprof_recorder.capture.sparse import SparseTensors


class Values:
    def __init__(self, capture, tensors):
        self._capture, self._tensors = capture, tensors
        self._plain, self._tensor = tensors.plain, tensors.kind
        self._kinds = set(tensors.plain)  # classes of tensors that have been seen
        self._sparse = SparseTensors(capture, capture.torch)
        self.count = 0
        self.counts_tell = False  # counts of references tell what only C++ holds

    # ---- the numbers of tensors

    def use(self, tensor):
        """The number of a tensor that a call takes."""
        if type(tensor) not in self._plain:
            tensor = awaited(tensor)
        calls = self._capture.now
        name = calls.names.get(id(tensor))
        if name is None:
            return self._meet(tensor)
        if name.gone is not None:
            self._is_back(name)
        calls.used.append(name)
        if tensor.requires_grad is not name.grad:
            name.grad = tensor.requires_grad
            if tensor.is_leaf:
                self._capture.add(f"step::requires_grad(%{name.numbers[-1]}, {tensor.requires_grad})")
        return name.numbers[-1]

    def _meet(self, tensor):
        """A tensor that no call has made: a view that Python took, or something from before or from elsewhere."""
        calls = self._capture.now
        if calls.enclosing and calls.enclosing.takes(tensor):
            return self.use(tensor)
        if self._sparse.is_one(tensor):
            return self._sparse.meet(tensor)
        base = self.looking_into(self._tensors.address(tensor)) if tensor.is_cuda else None
        facts = self._tensors.facts_of(tensor)
        grad = " grad" if tensor.requires_grad and facts else ""
        if base is None:
            number = self.new(tensor)
            self._capture.add(f"%{number}: {facts or 'u8[0]'}{grad} = step::tensor()")
        else:
            self.write_alias(tensor, base)
        name = calls.names[id(tensor)]
        calls.used.append(name)
        return name.numbers[-1]

    def next_number(self):
        """Of another value."""
        self.count += 1
        return self.count - 1

    def new(self, tensor):
        """The number of a tensor that has no name yet, or of another value that is the same object."""
        self._check_kind(tensor)
        calls, number, key = self._capture.now, self.next_number(), id(tensor)
        name = calls.names.get(key)
        if name is None:
            name = calls.names[key] = Name(tensor, self.died, calls, number)
            if self._may_be_held(tensor, name):
                calls.held.watch(name)
        else:
            if name.gone is not None:
                self._is_back(name)
            name.numbers.append(number)
        calls.used.append(name)
        return number

    def _check_kind(self, tensor):
        """Refuses tensors whose operators are called where nobody sees them."""
        kind = type(tensor)
        if tensor.is_nested and not is_nested(tensor):
            self._capture.refuse("it computes with nested tensors of strided layout; those of jagged layout (layout=torch.jagged) are known")
        if kind not in self._kinds:
            self._kinds.add(kind)
            # It calls operators on other tensors, below autograd.
            if kind.__torch_dispatch__ is not self._tensor.__torch_dispatch__ and inner(tensor) is None:
                self._capture.refuse(f"it computes with tensors of the class {kind.__module__}.{kind.__qualname__}, whose operators are called below autograd")

    def made(self, tensor):
        """The text of a value that a call makes."""
        return self.text_of_made(tensor) if isinstance(tensor, self._tensor) else "_"

    def text_of_made(self, tensor):
        tensor = tensor if type(tensor) in self._plain else awaited(tensor)
        number = self.new(tensor)
        facts = self._tensors.facts_of(tensor)
        return f"%{number}: {facts}" if facts else f"%{number}"

    # ---- tensors over the memory of others

    def alias(self, tensor, base):
        """A tensor over another one's memory, without its history."""
        if id(tensor) not in self._capture.now.names:
            self.use(base)
            self.write_alias(tensor, base)

    def write_alias(self, tensor, base, grad=True):
        """The same, where both are known to be so."""
        calls = self._capture.now
        name = calls.names[id(base)]
        if name.gone is not None:
            self._is_back(name)
        self.look(tensor, name.numbers[-1], grad)
        name.last = len(calls.calls) - 1

    def look(self, tensor, of, grad=True):
        """Writes that a tensor is another one over the memory of this value."""
        number = self.new(tensor)
        memory = self._tensors.memory_of(tensor)
        offset = f" offset {memory.storage_offset()}" if memory.storage_offset() else ""
        grad = " grad" if grad and tensor.requires_grad else ""
        self._capture.add(f"%{number}: {self._tensors.facts_of(tensor)}{offset}{grad} = step::alias(%{of})")

    def looking_into(self, address):
        """A tensor that has a name and looks into the storage at this address; None: there is none."""
        if address is None:
            return None
        for name in list(self._capture.now.names.values()):
            other = name()
            if other is not None and other.is_cuda and self._tensors.address(other) == address:
                return other
        return None

    # ---- which tensors count

    def living(self):
        """The tensors that have names."""
        return [tensor for tensor in (name() for name in list(self._capture.now.names.values())) if tensor is not None]

    def concern(self, values):
        """Whether a call that takes these is written down: some are on the device, or part of what autograd follows from there."""
        tensor_class = self._tensor
        for value in values:
            if isinstance(value, tensor_class):
                if self._tensors.is_on_device(value) or (value.requires_grad and id(value) in self._capture.now.names):
                    return True
            elif type(value) in (list, tuple) and value and self.concern(value):
                return True
        return False

    # ---- when they go

    def died(self, name):
        """Called when the object of a named tensor has gone."""
        capture, calls = self._capture, name.calls
        if calls.names.get(name.key) is name:
            del calls.names[name.key]
        if capture.running and calls.open and calls.calls and name.gone is None:
            within_backward = capture.paused or calls is not capture.now
            calls.drops.setdefault(name.last if within_backward else len(calls.calls) - 1, []).extend(name.numbers)

    def drop_held(self):
        """Drops what only autograd holds since the last call."""
        calls = self._capture.now
        for name in calls.held.gone():
            if calls.calls:
                name.gone = len(calls.calls) - 1
                calls.drops.setdefault(name.gone, []).extend(name.numbers)

    def _may_be_held(self, tensor, name):
        """Whether autograd alone may hold it later, and counts tell. Within a transform of torch.func a tensor may be held by its wrapper alone,
        which no count tells. So may one that autocast has converted."""
        capture, kind = self._capture, type(tensor)
        counted = capture.device.may_be_held(tensor) or (name.grad and (kind is self._tensor or is_nested(tensor)) and capture.torch.is_grad_enabled())
        return self.counts_tell and counted and not (capture.transforms.depth or capture.nested.casting)

    def _is_back(self, name):
        """Autograd has given it back to the program: it has not been dropped."""
        drops = name.calls.drops[name.gone]
        for number in name.numbers:
            drops.remove(number)
        name.gone = None
        name.calls.held.watch(name)
