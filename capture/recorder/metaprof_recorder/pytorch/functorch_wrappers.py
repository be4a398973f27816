"""While a transform of torch.func is at work the profiler looks away: it keeps the arguments of operators that it has seen until it
ends. Of a plain tensor that costs nothing, since its memory goes all the same; but wrappers (BatchedTensorImpl, TensorWrapper) go on holding
what they wrap, which the program itself would have let go.
"""
import contextlib
import functools
import sys

NAMES = ("vmap", "grad", "jvp", "func")  # _vmap_increment_nesting, …


class Wrappers:
    def __init__(self, torch):
        self._torch = torch
        self._observe = torch._C._autograd._enable_record_function  # of this thread, and of those that work for it
        self._depth = 0  # of transforms that are at work

    def install(self):
        for kind in NAMES:
            self._watch(f"_{kind}_increment_nesting", True)
            self._watch(f"_{kind}_decrement_nesting", False)

    def _watch(self, name, begins):
        original = getattr(self._torch._C._functorch, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def call(*arguments, **options):
            result = original(*arguments, **options)
            self._depth += 1 if begins else -1
            self._observe(self._depth == 0)
            return result

        # Not in torch._C itself: a compiler that follows a transform calls it there, on tensors without memory.
        for module in [module for path, module in list(sys.modules.items()) if path.startswith("torch._functorch")]:
            for attribute, value in list(vars(module).items()):
                if value is original:
                    setattr(module, attribute, call)

    @contextlib.contextmanager
    def seen(self, within=contextlib.nullcontext()):
        """What is done to tensors that are no wrappers, `within` another context."""
        hidden = self._depth > 0
        if hidden:
            self._observe(True)
        try:
            with within:
                yield
        finally:
            if hidden:
                self._observe(False)
