"""What storages are for, as far as the program's own objects say: parameters, buffers, inputs, gradients, optimizer state.

A tag is (cut, address, category, name, tensor): at that cut a storage of that purpose began at that address. Addresses are used
again, so the cut decides which storage is meant.
"""
from metaprof_recorder.program.modules import ByModule, Parameters
from metaprof_recorder.storages import saved_tensors
from metaprof_recorder.text.names import tensor_word


class Tags:
    """Keeps no tensor: those of modules are looked for anew each time."""

    def __init__(self, torch, capture=None, places=True):
        self._torch = torch
        self._places = places  # whether storages have addresses
        self._capture = capture  # of the program, which says what its tensors are for
        self._gradient_of = torch._C.TensorBase.grad.__get__
        self._seen = ByModule()  # those whose tensors are tagged
        self._parameters = Parameters()
        self.found = []
        self.kept = []  # (cut, address, device, node): what a node of autograd keeps at that cut
        self.graphs = saved_tensors.Graphs(torch)

    def model(self, module, path, cut):
        """The parameters and buffers of an outermost module, when it is first called; their names begin with its path."""
        if self._seen.get(module):
            return
        try:
            for inner in module.modules():
                self._seen.set(inner, True)
            self._parameters.add(module, path)
            for name, parameter in module.named_parameters(path):
                self._tag(cut, parameter, "parameter", name)
            transient = {id(inner._buffers[key]) for inner in module.modules() for key in inner._non_persistent_buffers_set if key in inner._buffers}
            for name, buffer in module.named_buffers(path):
                self._tag(cut, buffer, "buffer", name, id(buffer) not in transient)
        except Exception:  # noqa: BLE001 - a module may be anything; its storages stay without a name
            pass

    def inputs(self, arguments, cut):
        for argument in tensors_of(self._torch, arguments):
            self._tag(cut, argument, "input", "")

    def results(self, result, cut):
        """What autograd keeps of a forward that has ended with this result."""
        try:
            for kept in self.graphs.kept(tensors_of(self._torch, result)):
                where = _place(getattr(kept.tensor, "_local_tensor", kept.tensor))
                if where:
                    self.kept.append((cut, *where, kept.node))
        except Exception:  # noqa: BLE001 - as above: what is kept is not known then
            pass

    def gradients(self, cut):
        for name, parameter in self._parameters.now():
            gradient = self._gradient_of(parameter)
            if gradient is not None:
                self._tag(cut, gradient, "gradient", name)

    def parameters(self):
        """(name, parameter) of those that are still there."""
        return self._parameters.now()

    def optimizer(self, optimizer, cut):
        names = {id(parameter): name for name, parameter in self._parameters.now()}
        for parameter, state in list(optimizer.state.items()):
            name = names.get(id(parameter), "")
            if isinstance(state, dict):
                for key, value in state.items():
                    for tensor in tensors_of(self._torch, value):
                        self._tag(cut, tensor, "optimizer_state", f"{key} of {name}" if name else str(key))

    def _tag(self, cut, tensor, category, name, persistent=True):
        try:
            if self._capture and category != "gradient":
                self._capture.name(category, tensor, name, persistent)
            tensor = getattr(tensor, "_local_tensor", tensor)  # of a distributed tensor: what this rank has
            where = _place(tensor) if self._places else None
            if where:
                self.found.append((cut, *where, category, name, tensor_word(tensor), tensor.requires_grad))
        except Exception:  # noqa: BLE001 - tensors of other kinds (wrappers, sparse) have no storage to ask
            pass


def _place(tensor):
    """Address and device of a tensor's storage; None if it has none on a device."""
    if not tensor.is_cuda:
        return None
    address = tensor.untyped_storage().data_ptr()
    return (address, tensor.device.index or 0) if address else None


def tensors_of(torch, tree, depth=0):
    if isinstance(tree, torch.Tensor):
        yield tree
    elif depth < 3 and isinstance(tree, (list, tuple)):
        for value in tree:
            yield from tensors_of(torch, value, depth + 1)
    elif depth < 3 and hasattr(tree, "values") and callable(tree.values):
        for value in tree.values():
            yield from tensors_of(torch, value, depth + 1)
