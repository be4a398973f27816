"""Objects that the ranks of a job send to each other.

torch.distributed pickles an object, sends its size and then its bytes as tensors. The emulated device carries such values from
rank to rank (docs/explanation/emulator.md), but runs no kernels: what is computed of the sizes (the largest, the sum, where an object begins), and
tensors that are joined. In the module that does this, and nowhere else, the functions here know what their kernels would have done.
"""
import ctypes
import types
import weakref


class _TorchOfObjects(types.ModuleType):
    """torch, as torch.distributed.distributed_c10d sees it."""

    def __init__(self, torch, library):
        super().__init__("torch")
        self._torch = torch
        self._values = Values(library)
        self._sizes = _sizes(torch, self._values)

    def __getattr__(self, name):
        return getattr(self._torch, name)

    def cat(self, tensors, *arguments, **options):
        result = self._torch.cat(tensors, *arguments, **options)
        known = [self._values.read(tensor) for tensor in tensors]
        if any(known):
            parts = [value if value is not None else bytes(tensor.nbytes) for value, tensor in zip(known, tensors)]
            self._values.write(result, b"".join(parts))
        return result

    def empty(self, *arguments, **options):
        result = self._torch.empty(*arguments, **options)
        return result.as_subclass(self._sizes) if result.dtype == self._torch.int64 and result.is_cuda else result

    def sum(self, tensor, *arguments, **options):
        result = self._torch.sum(tensor, *arguments, **options)
        numbers = self._values.numbers(tensor)
        if numbers is not None and result.numel() == 1 and result.dtype == self._torch.int64:
            self._values.write(result, sum(numbers).to_bytes(8, "little", signed=True))
        return result


class Values:
    """Small values on the emulated device. `library`: its own functions."""

    def __init__(self, library):
        self._library = library
        library.metaprof_emulator_known.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
        library.metaprof_emulator_write.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p]
        library.metaprof_emulator_write.restype = None
        self._written = []  # (storage, address, bytes) of what was written

    def read(self, tensor):
        """A contiguous tensor's bytes; None if it is not on the device, or they are not known."""
        if not tensor.is_cuda or not tensor.is_contiguous() or not tensor.nbytes:
            return None
        out = ctypes.create_string_buffer(tensor.nbytes)
        return out.raw if self._library.metaprof_emulator_known(tensor.data_ptr(), tensor.nbytes, out) else None

    def numbers(self, tensor):
        """Those of a tensor of 64-bit integers, or None."""
        found = self.read(tensor) if tensor.element_size() == 8 and not tensor.is_floating_point() else None
        return None if found is None else [int.from_bytes(found[i:i + 8], "little", signed=True) for i in range(0, len(found), 8)]

    def write(self, tensor, content):
        self.forget_freed()
        if tensor.is_cuda and tensor.is_contiguous():
            self._library.metaprof_emulator_write(tensor.data_ptr(), len(content), content)
            self._written.append((weakref.ref(tensor.untyped_storage()), tensor.data_ptr(), len(content)))

    def forget_freed(self):
        """What stood in storages that are gone reads as zero: their memory is used for other things."""
        for storage, address, count in self._written:
            if storage() is None:
                self._library.metaprof_emulator_write(address, count, bytes(count))
        self._written = [entry for entry in self._written if entry[0]() is not None]


def _sizes(torch, values):
    """A tensor of sizes that are received: its elements are numbers of the host's, so that a sum of them is."""
    class Sizes(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

        def __getitem__(self, index):
            numbers = values.numbers(self)
            return super().__getitem__(index) if numbers is None or not isinstance(index, int) else numbers[index]

        def __iter__(self):
            numbers = values.numbers(self)
            return super().__iter__() if numbers is None else iter(numbers)
    return Sizes


def _largest(values):
    """max, of tensors with one number each and of all else."""
    def largest(*arguments, **options):
        if len(arguments) == 1 and not options and isinstance(arguments[0], list) and arguments[0]:
            numbers = [values.numbers(tensor) if hasattr(tensor, "is_cuda") and tensor.numel() == 1 else None for tensor in arguments[0]]
            if all(number is not None for number in numbers):
                found = arguments[0][numbers.index(max(numbers))]
                values.write(found, values.read(found))  # who asks for the number gets it
                return found
        return max(*arguments, **options)
    return largest


def install(torch, library):
    """`library`: the emulated device's; None on a real one, which computes itself."""
    if library is None or not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d
    distributed_c10d.torch = _TorchOfObjects(torch, library)
    distributed_c10d.max = _largest(distributed_c10d.torch._values)
