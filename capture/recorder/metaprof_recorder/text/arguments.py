"""How the text of a program writes what calls are given and what they make (docs/reference/program.md of metaprof).

Knows nothing of torch but what it is told: classes, and the numbers that enumerations have in C++.
"""
import linecache
import os
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


def short_name(file):
    """Of the program's own files: from its folder on; of a library's: from the name of the library on."""
    for folder in (os.getcwd() + "/", "/site-packages/", "/dist-packages/"):
        before, found, rest = file.partition(folder)
        if found and (not before or folder[1:] in ("site-packages/", "dist-packages/")):
            return rest
    return file


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


class Places:
    """Modules and source lines, each of which is written down before the first call that has it."""

    def __init__(self, write, sources):
        self._write = write
        self._sources = sources
        self._scopes = {}  # (parent's number, path, which call of it) -> number
        self._files = {}
        self._lines = {}

    def scope(self, parent, path, call):
        """The number of a module's call within that of another one (0: none)."""
        key = parent, path, call
        number = self._scopes.get(key)
        if number is None:
            number = self._scopes[key] = len(self._scopes) + 1
            text = f"scope m{number} = {word(path)}"
            if call:
                text += f" key {word(f'{path}@{call}')}"
            self._write(text + (f" in m{parent}" if parent else ""))
        return number

    def stack(self, frame):
        """The number of the line of the program that is at work in this frame or one that called it (0: none)."""
        library = None
        while frame is not None:
            kind = self._sources.kind(frame.f_code.co_filename)
            if kind == 0:
                break
            if kind == 1 and library is None:
                library = frame
            frame = frame.f_back
        frame = frame or library
        if frame is None:
            return 0
        key = frame.f_code, frame.f_lineno
        return self._lines.get(key) or self._new_line(key)

    def _new_line(self, key):
        code, line = key
        file = self._files.get(code.co_filename)
        if file is None:
            file = self._files[code.co_filename] = len(self._files) + 1
            self._write(f"file f{file} = {words(short_name(code.co_filename))}")
        number = self._lines[key] = len(self._lines) + 1
        text = linecache.getline(code.co_filename, line).strip()
        self._write(f"line l{number} = f{file} {line} {word(code.co_name)} {words(text)}")
        self._write(f"stack s{number} = l{number}")
        return number
