"""What jobs of several processes do: tensors that wrap others, and memory of storages that comes and goes."""
import functools


def install(capture):
    _watch_storages(capture)


def inner(tensor):
    """What a tensor's own memory is: of a DTensor the local one; None: nobody knows. The program has operators called on that instead."""
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
            tensor = capture.looking_into(storage._cdata)
            if tensor is not None:
                capture.step(f"resize_storage(%{capture.use(tensor)}, {int(size)})")
        return original(storage, size)

    owner.resize_ = resize
