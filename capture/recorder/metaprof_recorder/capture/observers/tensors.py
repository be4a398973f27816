"""What is asked of tensors and changed in them without an operator: `.data`, `.grad`, `.dtype`, and the like."""
import functools
import sys
import weakref

from metaprof_recorder.capture.calls import Name
from metaprof_recorder.capture.dtypes import rebinds


def install(capture):
    torch = capture.torch
    _watch_data(capture, torch.Tensor, torch._C.TensorBase.data)
    _watch_gradient(capture, torch.Tensor, torch._C.TensorBase.grad)
    _watch_dtype(capture, torch.Tensor, torch._C.TensorBase.dtype)
    _watch_contiguous(capture, torch.Tensor, torch.Tensor.contiguous)
    _watch_subclass(capture, torch.Tensor)
    _watch_swap(capture, torch.utils)
    _hide_names(capture, weakref)


class Watched(property):
    """In the place of a property of tensors. Who looks at it (torch's compiler does) finds the name of the original and its class."""

    def __init__(self, original, *functions):
        super().__init__(*functions, doc=original.__doc__)
        self.__objclass__, self.__name__ = original.__objclass__, original.__name__


def _watch_data(capture, owner, original):
    def read(tensor):
        data = original.__get__(tensor)
        if capture.concerns(tensor) and data.is_cuda:
            capture.values.alias(data, tensor)
        return data

    def write(tensor, data):
        if capture.active() and isinstance(data, owner) and (data.is_cuda or capture.concerns(tensor)):
            capture.step(f"set_data(%{capture.values.use(tensor)}, %{capture.values.use(data)})")
        original.__set__(tensor, data)
        capture.device.data_is_set(tensor, data)

    capture.patches.set(owner, "data", Watched(original, read, write))


def _watch_gradient(capture, owner, original):
    def read(tensor):
        gradient = original.__get__(tensor)
        if gradient is not None and capture.concerns(tensor) and id(gradient) not in capture.now.names:
            leaf = capture.values.use(tensor)
            capture.call(f"{capture.values.made(gradient)} = step::gradient(%{leaf})")
        return gradient

    def write(tensor, gradient):
        if capture.concerns(tensor):
            if gradient is not None:
                capture.step(f"set_gradient(%{capture.values.use(tensor)}, %{capture.values.use(gradient)})")
            elif original.__get__(tensor) is not None:
                capture.step(f"set_gradient(%{capture.values.use(tensor)}, None)")
        original.__set__(tensor, gradient)

    def delete(tensor):
        write(tensor, None)

    capture.patches.set(owner, "grad", Watched(original, read, write, delete))


def _watch_dtype(capture, owner, original):
    """Calls are given dtypes of tensors: in another precision they would be given others."""
    def read(tensor):
        dtype = original.__get__(tensor)
        if capture.active():
            name = capture.now.names.get(id(tensor))
            if name is not None:
                capture.dtypes.read(sys._getframe(1), dtype, name.numbers[-1])
        return dtype

    capture.patches.set(owner, "dtype", Watched(original, read))


def _watch_contiguous(capture, owner, original):
    """What is contiguous is given back without a call of the operator; in another precision it may not be."""
    @functools.wraps(original)
    def contiguous(tensor, *arguments, **options):
        result = original(tensor, *arguments, **options)
        if result is tensor and capture.concerns(tensor):
            # Our own reference and that of the function that counts; a variable of the program's is one more.
            others = sys.getrefcount(tensor) - 3 - (capture.values.counts_tell and tensor._use_count() > 1)
            goes = others == 0 or (others == 1 and rebinds(sys._getframe(1)))
            formats = "".join(f", memory_format={capture.constants.text(one)}" for one in (*arguments, *options.values()))
            capture.operators.unchanged(tensor, f"aten::contiguous({{}}{formats})", goes)
        return result

    capture.patches.set(owner, "contiguous", contiguous)


def _watch_subclass(capture, owner):
    """A parameter is another object over the memory of the tensor that it is made of, which may be gone when the parameter is met."""
    original = owner._make_subclass

    @functools.wraps(original)
    def make(kind, tensor, *arguments, **options):
        made = original(kind, tensor, *arguments, **options)
        if capture.concerns(tensor) and made.is_cuda:
            capture.values.alias(made, tensor)
        return made

    capture.patches.set(owner, "_make_subclass", staticmethod(make))


def _watch_swap(capture, owner):
    original = owner.swap_tensors

    @functools.wraps(original)
    def swap(first, second):
        if not capture.active():
            return original(first, second)
        return capture.now.exchange([first, second], capture.values.died, lambda: original(first, second))

    capture.patches.set(owner, "swap_tensors", swap)


def _hide_names(capture, owner):
    """Who asks for the weak references to a tensor finds the program's own."""
    original = owner.getweakrefs

    @functools.wraps(original)
    def references(value):
        return [one for one in original(value) if type(one) is not Name]

    capture.patches.set(owner, "getweakrefs", references)
    capture.patches.set(owner, "getweakrefcount", lambda value: len(references(value)))
