"""What a captured program's device is asked: the one that CUDA gives, real or emulated. fake/device.py has the other kind."""


class Cuda:
    calls_hooks_of_modules = True
    kinds = ()  # classes of tensors, besides torch's own, that stand for memory of the device

    def __init__(self, torch):
        functions = torch._C
        self.current = functions._cuda_getDevice  # its index
        self._stream, self._statistics = functions._cuda_getCurrentStream, functions._cuda_memoryStats

    def stream(self):
        """What PyTorch calls the stream that is current."""
        return self._stream(self.current())[0]

    def requested(self):
        """Bytes that have been requested since the process began, whether they have been given back or not."""
        return self._statistics(self.current())["requested_bytes"]["all"]["allocated"]

    @staticmethod
    def may_be_held(tensor):
        """Whether C++ may hold this tensor, although autograd does not."""
        return False

    @staticmethod
    def rule(overload):
        """What is called in the place of an operator that the program calls; None: itself."""

    @staticmethod
    def hook_is_registered(tensor, hook):
        """On the gradient of a tensor."""

    @staticmethod
    def data_is_set(tensor, data):
        """`tensor.data = data` has been done."""

    def backward(self, engine, arguments, options):
        """Runs a backward. `engine`: torch's own function."""
        return engine(*arguments, **options)
