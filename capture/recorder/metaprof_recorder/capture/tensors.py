"""What is known of a tensor: whether it is on the device, which tensor has its memory, and how the text describes it."""
from metaprof_recorder.capture.distributed import awaited, inner
from metaprof_recorder.text.arguments import Facts


class Tensors:
    def __init__(self, torch, device):
        self._torch = torch
        self.kind = torch.Tensor
        self.plain = (torch.Tensor, torch.nn.Parameter, *device.kinds)  # classes that wrap no other tensors
        self.facts = Facts(torch.strided)

    def is_on_device(self, tensor):
        """Whether it is on the device, and not only said to be (while a compiler looks at what a function does)."""
        return tensor.is_cuda and (type(tensor) in self.plain or type(tensor).__name__ != "FakeTensor")

    def some_on_device(self, result):
        if isinstance(result, self.kind):
            return self.is_on_device(result)
        return isinstance(result, (list, tuple)) and any(self.some_on_device(value) for value in result)

    def memory_of(self, tensor):
        """The tensor that has its memory: itself, if it wraps none."""
        return tensor if type(tensor) in self.plain else inner(tensor) if inner(tensor) is not None else tensor

    def address(self, tensor):
        """Of its storage; None: it has none (sparse, and other kinds)."""
        try:
            return self._torch._C._storage_address(self.memory_of(tensor))
        except (RuntimeError, NotImplementedError):
            return None

    def facts_of(self, tensor):
        return self.facts.of(self.memory_of(tensor))

    def within(self, values):
        """The tensors of nested lists. For what a collective may not have given yet stands the tensor in it."""
        for value in values:
            if isinstance(value, self.kind):
                yield awaited(value)
            elif isinstance(value, (list, tuple)):
                yield from self.within(value)
