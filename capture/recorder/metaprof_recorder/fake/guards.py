"""PyTorch's C++ code on a machine without a driver, or in a PyTorch that is built for the CPU.

A kernel first makes the device of its tensors the current one, which asks CUDA's runtime; runtimes before CUDA 13 need a driver for it, and a PyTorch for the
CPU has none. For tensors without memory there is nothing to be made current: meanwhile the device is asked as the meta device is, whose answers do nothing.
That device has no number, so that "cuda" is taken to be "cuda:0".
"""
import contextlib
import ctypes
import os

from torch.overrides import TorchFunctionMode

DEVICES = 21  # c10::DeviceType up to PrivateUse1; these two have their numbers since PyTorch 1.5
CUDA, META = 1, 14


@contextlib.contextmanager
def without_driver(torch):
    """Where there is a device, nothing is changed."""
    if torch.cuda.is_available():
        yield
        return
    guards = _guards(torch)
    kept, guards[CUDA] = guards[CUDA], guards[META]
    try:
        with Numbered(torch):
            yield
    finally:
        guards[CUDA] = kept


def asks_a_driver(torch):
    """Whether the runtime asks a driver that is not here about the card."""
    return not torch.cuda.is_available() and (torch.version.cuda is None or int(torch.version.cuda.split(".")[0]) < 13)


def _guards(torch):
    """c10/core/impl/DeviceGuardImplInterface.h, device_guard_impl_registry: who makes a device of each type the current one."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    return (ctypes.c_void_p * DEVICES).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")


class Numbered(TorchFunctionMode):
    """Calls that name the device without a number name the first one."""

    def __init__(self, torch):
        super().__init__()
        self._kind, self._first = torch.device, torch.device("cuda", 0)
        self._moves = torch.Tensor.cuda

    def __torch_function__(self, function, types, arguments=(), options=None):
        options = options or {}
        if function is self._moves and len(arguments) == 1 and options.get("device") is None:
            options = {**options, "device": self._first}
        elif any(self._is_cuda(value) for value in arguments):
            arguments = tuple(self._first if self._is_cuda(value) else value for value in arguments)
        elif self._is_cuda(options.get("device")):
            options = {**options, "device": self._first}
        return function(*arguments, **options)

    def _is_cuda(self, value):
        return value == "cuda" if type(value) is str else type(value) is self._kind and value.type == "cuda" and value.index is None
