"""What the outermost modules of a program are, at their first calls: parameters, and the tensors that they were called with."""
from metaprof_recorder.program.modules import ByModule

MOST = 64  # modules that are described: a program may make one for each step


class Models:
    """`tensors_in(object)` gives the tensors of nested lists and dictionaries; `write(**members)` a row."""

    def __init__(self, tensors_in, write):
        self._tensors_in, self._write = tensors_in, write
        self._seen = ByModule()
        self._count = 0

    def called(self, module, arguments, options):
        if self._seen.get(module) or self._count >= MOST:
            return
        self._seen.set(module, True)
        self._count += 1
        try:
            parameters = list(module.parameters())
            inputs = [{"shape": [int(size) for size in tensor.shape], "dtype": str(tensor.dtype).removeprefix("torch.")}
                      for tensor in self._tensors_in([arguments, options])]
            size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        except Exception:  # noqa: BLE001 - a module may be anything, and its inputs, too: nothing is said of it then
            return
        self._write(type=type(module).__name__, inputs=inputs,
                    parameters={"tensors": len(parameters), "trainable": sum(p.requires_grad for p in parameters), "bytes": size})
