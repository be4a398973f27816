"""Compiled functions, and compiling."""
import functools


def install(capture):
    """Compiled functions take their memory in C++ and call some operators; kernels of their own take none. What compiling takes is not seen."""
    guards = capture.torch._C._dynamo.guards
    for name, device in (("_empty_strided_cuda", "cuda"), ("_empty_strided_cuda_pinned", None), ("_empty_strided_cpu", None)):
        if hasattr(guards, name) and device:
            _watch_buffers(capture, guards, name, device)
    _watch_views(capture, guards, "_reinterpret_tensor")
    for owner in (capture.torch, capture.torch.nn.Module):
        _watch_compile(capture, owner, owner.compile)


def _watch_buffers(capture, owner, name, device):
    original = getattr(owner, name)
    empty = capture.torch.empty_strided

    @functools.wraps(original)
    def call(sizes, strides, dtype):
        return empty(sizes, strides, dtype=dtype, device=device) if capture.active() else original(sizes, strides, dtype)

    capture.patches.set(owner, name, call)


def _watch_views(capture, owner, name):
    """Another look at a buffer, which may be gone when the look is used."""
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def call(tensor, *arguments):
        made = original(tensor, *arguments)
        if capture.concerns(tensor) and made.is_cuda:
            capture.values.alias(made, tensor)
        return made

    capture.patches.set(owner, name, call)


def _watch_compile(capture, owner, original):
    @functools.wraps(original)
    def call(*arguments, **options):
        result = original(*arguments, **options)
        if not capture.watches_compiler:
            from torch._dynamo.callback import callback_handler
            compiling = Compiling(capture)
            _watch_guards(capture)
            callback_handler.register_start_callback(lambda *_: compiling.begins())
            callback_handler.register_end_callback(lambda *_: compiling.ends())
            capture.watches_compiler = True
        return result

    capture.patches.set(owner, "compile", call)


def _watch_guards(capture):
    """A compiled function is compiled again for arguments whose dispatch keys, with those of the thread, differ from those that its guards were made with."""
    from torch._dynamo.guards import CheckFunctionManager
    original = CheckFunctionManager.__init__

    @functools.wraps(original)
    def make(*arguments, **options):
        with capture.dispatch.key_included():
            original(*arguments, **options)

    capture.patches.set(CheckFunctionManager, "__init__", make)


class Compiling:
    """What torch.compile calls while it compiles is none of the program's calls."""

    def __init__(self, capture):
        self._capture = capture
        self._off = None
        self._part = capture.unseen.part("torch.compile, while it compiles")

    def begins(self):
        capture = self._capture
        if self._off is None and capture.running:
            capture.paused += 1
            self._part.__enter__()
            self._off = capture.dispatch.sleep()

    def ends(self):
        if self._off is not None:
            self._off()
            self._off = None
            self._part.__exit__()
            self._capture.paused -= 1
