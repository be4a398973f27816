"""What jobs of several processes do: tensors that wrap others, and memory of storages that comes and goes."""
import functools

from metaprof_recorder.capture.nested import is_nested
from metaprof_recorder.process.import_hook import after_import
from metaprof_recorder.ranks.process_groups import alone

OF_RANKS = "ranks"  # in place of the number of the streams on which ranks send each other tensors


def install(capture):
    _watch_storages(capture)
    if capture.torch.distributed.is_available():
        capture.patches.later(after_import("torch.distributed.tensor._dispatch", lambda module: _watch_redistribution(capture, module.OpDispatcher)))


class Redistributed:
    """Of one call on DTensors: which local tensors it takes in place of those that it was given."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.locals = {}  # id of a local tensor -> (itself, what it was redistributed to)

    def among(self, values):
        return [self.among(value) if isinstance(value, (list, tuple)) else self._of(value) for value in values]

    def _of(self, value):
        local = getattr(value, "_local_tensor", None)
        return value if local is None or id(local) not in self.locals else self.locals[id(local)][1]


def _needs_gradients(capture, call, info, schema, *_):
    """Whether what is redistributed may need gradients. Indices and masks never do."""
    if not capture.torch.is_grad_enabled() or not any(one.requires_grad for one in capture.tensors.within(call.arguments)):
        return False
    wanted = capture.torch.utils._pytree.tree_leaves(schema.args_schema) if info.args_tree_spec is not None else schema.args_schema
    return any(old != new and getattr(local, "is_floating_point", bool)() for old, new, local in zip(info.flat_args_schema, wanted, info.local_args))


def _watch_redistribution(capture, owner):
    """An operator may first have its DTensors redistributed. That is written down before it, where no gradients are wanted: a node of autograd knows nothing of it."""
    original = owner.redistribute_local_args
    keys = capture.torch._C.DispatchKey
    ours = keys.PreDispatch, keys.PythonDispatcher
    functions = capture.torch._C

    def redistribute(info, *arguments):
        call = capture.operators.redistributed
        if call is None or not capture.active() or _needs_gradients(capture, call, info, *arguments):
            return original(info, *arguments)
        before = info.local_args
        excluded = [key for key in ours if functions._dispatch_tls_is_dispatch_key_excluded(key)]
        for key in excluded:
            functions._dispatch_tls_set_dispatch_key_excluded(key, False)
        guard = functions._EnablePythonDispatcher()
        try:
            original(info, *arguments)
        finally:
            del guard
            for key in excluded:
                functions._dispatch_tls_set_dispatch_key_excluded(key, True)
        call.locals.update({id(old): (old, new) for old, new in zip(before, info.local_args) if old is not new and isinstance(new, capture.torch.Tensor)})

    capture.patches.set(owner, "redistribute_local_args", staticmethod(redistribute))


def own_sizes(signature, arguments, result):
    """The arguments of a call on DTensors with the sizes of the rank's own part in place of those of the whole tensor."""
    local, at = getattr(result, "_local_tensor", None), signature.sizes_at
    if local is None or at is None or at >= len(arguments) or not isinstance(arguments[at], (list, tuple)):
        return arguments
    sizes = arguments[at]
    first = arguments[1] % (result.dim() - len(sizes) + 1) if at > 1 else 0  # (self, dim, sizes)
    own = local.shape[first:first + len(sizes)]
    if len(own) != len(sizes) or own == result.shape[first:first + len(sizes)]:
        return arguments
    return (*arguments[:at], [size if size == -1 else part for size, part in zip(sizes, own)], *arguments[at + 1:])


def inner(tensor):
    """What a tensor's own memory is: of a DTensor the local one, of a nested tensor its values; None: nobody knows. The program has operators called on that instead."""
    if is_nested(tensor):
        return tensor._values
    found = getattr(tensor, "_local_tensor", None)
    return found if found is not None else getattr(tensor, "elem", None)


def awaited(tensor):
    """The result of a collective that may not have come yet stands for the one in it; others for themselves."""
    return tensor.elem if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor


def _watch_storages(capture):
    """FSDP gives the memory of whole parameters back without a tensor's dying."""
    owner = capture.torch.UntypedStorage
    original = owner.resize_

    @functools.wraps(original)
    def resize(storage, size):
        if capture.active() and storage.is_cuda and size != storage.size():
            tensor = capture.values.looking_into(storage._cdata)
            if tensor is not None:
                capture.modes.write_stream()
                capture.step(f"resize_storage(%{capture.values.use(tensor)}, {int(size)})")
        return original(storage, size)

    capture.patches.set(owner, "resize_", resize)


def keys_below(torch, overload, tensors):
    """Where a call of this operator goes below autograd, which does nothing for it; what it calls there is seen again. None: it may do something."""
    functions, key, name = torch._C, torch._C.DispatchKey, overload.name()
    if alone() and "c10d" in name.partition("::")[0]:  # in place of other ranks its process group copies, which no other one does
        return None
    keys = functions._dispatch_tls_local_include_set()
    for tensor in tensors:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.requires_grad:
            return None
        keys = keys | functions._dispatch_keys(tensor)
    for backend in (key.CUDA, key.CPU):
        kernels = (str(backend).rpartition(".")[2], "CompositeExplicitAutograd")
        if keys.has(backend) and any(functions._dispatch_has_kernel_for_dispatch_key(name, kernel) for kernel in kernels):
            return functions.DispatchKeySet(backend)
    return None


def own_results(capture, arguments, result):
    """Without those that a call has made, and those that lie in the memory of an argument, which the schema does not say."""
    if isinstance(result, (list, tuple)):
        return type(result)(own_results(capture, arguments, one) for one in result)
    if not isinstance(result, capture.tensors.kind):
        return result
    if id(awaited(result)) in capture.now.names:
        return None
    address = capture.tensors.address(awaited(result))
    return result if address is None or all(address != capture.tensors.address(one) for one in capture.tensors.within(arguments)) else None


def sent(torch, name, arguments):
    """Tensors that a call between two ranks uses on a stream of its own (ProcessGroupNCCL::pointToPoint): what frees them waits for that."""
    if name not in ("c10d::send", "c10d::recv_") or alone():
        return []
    return [tensor for tensor in arguments[0] if tensor.is_cuda]
