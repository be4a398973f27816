"""How the text of a program writes what calls are given and what they make (docs/reference/program.md of metaprof).

Knows nothing of torch but what it is told: classes, and the numbers that enumerations have in C++.
"""
import re

from metaprof_recorder.text.names import dtype_word, quoted

MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")  # in the order of their numbers
LAYOUTS = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")

PLAIN = re.compile(r"[A-Za-z0-9_./@*+:-]+")


class Constants:
    """Texts of arguments that are no tensors."""

    def __init__(self, torch, current_device):
        self._words = {None: "None", True: "True", False: "False"}
        self._enumerations = {}
        for name in MEMORY_FORMATS:
            self._enumerations[getattr(torch, name)] = str(MEMORY_FORMATS.index(name))
        for name in LAYOUTS:
            if hasattr(torch, name):
                self._enumerations[getattr(torch, name)] = str(LAYOUTS.index(name))
        self._dtype, self._device, self._generator = torch.dtype, torch.device, torch.Generator
        self._current_device = current_device

    def text(self, value):
        kind = type(value)
        if kind is int:
            return str(value)
        if kind is bool or value is None:
            return self._words[value]
        if kind is float:
            return real(value)
        if kind is str:
            return words(value)
        if kind is self._dtype:
            return dtype_word(value) or f'unknown("{value}")'
        if kind is self._device:
            return self._device_text(value)
        if kind is complex:
            return f"complex({real(value.real)}, {real(value.imag)})"
        if kind is self._generator:
            return "generator"
        if kind in (list, tuple):
            return "[" + ", ".join(self.text(element) for element in value) + "]"
        found = self._enumerations.get(value) if value.__hash__ else None
        if found is not None:
            return found
        if isinstance(value, (int, float)):  # a symbolic number, or one of numpy
            return self.text(int(value) if isinstance(value, int) else float(value))
        return f"unknown({words(kind.__name__)})"

    def _device_text(self, device):
        if device.type == "cpu":
            return "device(cpu)"
        if device.type != "cuda":
            return f"unknown({words(str(device))})"
        if device.index is None or device.index == self._current_device():
            return "device(model)"
        return f"device(cuda:{device.index})"


def real(number):
    text = repr(number)
    return text if any(character in text for character in ".en") else text + ".0"


def word(text):
    """As it is, or in quotes where it has other characters than a plain word."""
    return text if PLAIN.fullmatch(text) else words(text)


def words(text):
    """In quotes, always."""
    escaped = quoted(text)
    return escaped if escaped.startswith('"') else f'"{escaped}"'


class Facts:
    """Texts of what is known of a tensor: "f32[2,3]", "f32[2,3](1,2) on cpu"."""

    def __init__(self, strided=None):
        self._cache = {}
        self._strided = strided  # torch.strided

    def of(self, tensor):
        """None of a tensor that the text cannot describe (sparse, quantized, of another device)."""
        if self._strided is not None and tensor.layout is not self._strided:
            return None
        try:
            contiguous = tensor.is_contiguous()
            key = tensor.dtype, tensor.shape, contiguous or tensor.stride(), tensor.is_cuda
        except (RuntimeError, NotImplementedError):
            return None
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = self._text(tensor, contiguous)
        return found

    @staticmethod
    def _text(tensor, contiguous):
        dtype = dtype_word(tensor.dtype)
        if dtype is None:
            return None
        text = f"{dtype}[{','.join(str(int(size)) for size in tensor.shape)}]"
        if not contiguous:
            text += f"({','.join(str(int(stride)) for stride in tensor.stride())})"
        return text if tensor.is_cuda else text + " on cpu"
