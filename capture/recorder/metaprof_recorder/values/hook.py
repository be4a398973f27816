"""How calls of operators are seen below autograd, without a dispatch mode: where one is active PyTorch itself takes other ways, which take other memory.

PyTorch has a dispatch key, Fake, that it does not use, between autograd and what runs on devices. Each operator that a device runs is given a kernel
there, and threads that are watched include the key. Views write nothing and make nothing: they have no such kernel.

Within a backward calls are not seen, but the size of what `x[mask]` took is asked there again: `nonzero` has a kernel on another key without use.
"""
import functools
import threading

from metaprof_recorder import FOLDER
from metaprof_recorder.program import sources
from metaprof_recorder.pytorch.higher_order import OF_SIZES, OF_VALUES, passing
from metaprof_recorder.values.operators import COALESCE, Operator

OF_DEVICES = ("CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
TRACED = ("FakeTensor", "FunctionalTensor", "UninitializedTensorMixin")  # they stand for tensors that are not there
NOT_SEEN = ("prim::", "prims::", "profiler::", "debugprims::", "rngprims::", "inductor::")


class Hook:
    """`call(operator, keys, arguments, options)` is called in the place of each operator, and `size`, in the same way, in that of `nonzero` within a backward."""

    def __init__(self, torch, call, size):
        self._torch, self._call, self._size = torch, call, size
        c = torch._C
        self._key, self._key_of_sizes = map(c._parse_dispatch_key, (OF_VALUES, OF_SIZES))
        self._below, self._below_sizes = map(c._dispatch_keyset_full_after, (self._key, self._key_of_sizes))
        self._include, self._is_included = c._dispatch_tls_set_dispatch_key_included, c._dispatch_tls_is_dispatch_key_included
        self._libraries, self._known = {}, set()
        self._local = threading.local()
        self.begun = False

    def begin(self):
        """In this thread, and in those that its backward uses."""
        for key in (OF_VALUES, OF_SIZES):
            self._library("_").fallback(self._torch.library.fallthrough_kernel, key)
        self._library("aten").m.impl("nonzero", OF_SIZES, self._kernel("aten::nonzero", self._size, self._below_sizes), True)
        self.register()
        operator = self._torch._ops.HigherOrderOperator
        operator.dispatch = passing(self._torch, operator.dispatch)
        self._look_when_libraries_are_loaded()
        self._look_away_from_fake_tensors()
        self.begun = True
        self.watch(True)
        self._let_large_numbers_pass()

    def _let_large_numbers_pass(self):
        """No kernel of Python can give a number of 2^63 or more back in some versions of PyTorch (2.6)."""
        torch, original = self._torch, self._torch.Tensor.item
        try:
            original(torch.tensor([-1]).view(torch.uint64))
        except RuntimeError:
            @functools.wraps(original)
            def item(tensor):
                return self.unseen(original, (tensor,), {}) if tensor.dtype is torch.uint64 else original(tensor)

            torch.Tensor.item = item

    def watch(self, on):
        """Whether calls of this thread are seen."""
        self._include(self._key, on)

    def watch_sizes(self, on):
        """Whether this thread's `nonzero` is seen, though its calls are not."""
        self._include(self._key_of_sizes, on)

    def unseen(self, function, arguments, options):
        """Calls a function within which nothing is seen."""
        before = self.watches
        self.watch(False)
        try:
            return function(*arguments, **options)
        finally:
            self.watch(before)

    @property
    def watches(self):
        return self._is_included(self._key)

    def register(self):
        """Operators and classes of tensors that have come since the last time, too."""
        self._watch_subclasses()
        for name in self._torch._C._dispatch_get_all_op_names():
            if name not in self._known:
                self._known.add(name)
                if not name.startswith(NOT_SEEN) and self._is_of_devices(name):
                    space, _, rest = name.partition("::")
                    self._library(space).m.impl(rest, OF_VALUES, self._kernel(name, self._call, self._below), True)

    def _is_of_devices(self, name):
        c = self._torch._C
        if name == COALESCE:
            return True
        if not any(c._dispatch_has_kernel_for_dispatch_key(name, key) for key in OF_DEVICES):
            return False
        try:
            schema = c._get_schema(*name.partition(".")[::2])
        except RuntimeError:  # a library that cannot be used here (its other libraries are missing) has left kernels of an operator that nobody defined
            return False
        return not schema.returns or any(value.alias_info is None for value in schema.returns) or \
            any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)

    def _library(self, space):
        if space not in self._libraries:
            self._libraries[space] = self._torch.library.Library(space, "IMPL")
        return self._libraries[space]

    def _kernel(self, name, call, below):
        torch = self._torch
        operator = None

        def kernel(keys, *arguments, **options):
            nonlocal operator
            if operator is None:
                operator = Operator(torch, name)
            try:
                return call(operator, keys & below, arguments, options)
            except BaseException as error:
                error.__traceback__ = sources.without(FOLDER, error.__traceback__)  # the program shows its own lines
                raise

        skip = getattr(torch._C._dynamo.eval_frame, "skip_code", None)
        if skip is not None:  # torch.compile looks into what is called between its regions
            skip(kernel.__code__)
        return kernel

    def _look_when_libraries_are_loaded(self):
        kind = type(self._torch.ops)
        original = kind.load_library

        @functools.wraps(original)
        def load_library(*arguments):
            original(*arguments)
            self.register()

        kind.load_library = load_library

    def _look_away_from_fake_tensors(self):
        """A compiler calls operators on tensors that are not there. Their sizes may be symbols, which no kernel of Python can pass on as they came."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        enter, leave = FakeTensorMode.__enter__, FakeTensorMode.__exit__

        @functools.wraps(enter)
        def look_away(mode):
            self._stack().append(self.watches)
            self.watch(False)
            return enter(mode)

        @functools.wraps(leave)
        def look_again(mode, *error):
            try:
                return leave(mode, *error)
            finally:
                stack = self._stack()
                if stack:  # else it was entered before the hook began
                    self.watch(stack.pop())

        FakeTensorMode.__enter__, FakeTensorMode.__exit__ = look_away, look_again

    def _stack(self):
        """Of this thread: whether calls were seen before each mode that it is in."""
        if not hasattr(self._local, "before"):
            self._local.before = []
        return self._local.before

    def _watch_subclasses(self):
        """Classes of tensors that call operators of their own (DTensor, nested tensors): PyTorch keeps the keys above theirs out of what they call."""
        waiting = self._torch.Tensor.__subclasses__()
        while waiting:
            kind = waiting.pop()
            waiting += kind.__subclasses__()
            self._watch_subclass(kind)

    def _watch_subclass(self, kind):
        own = kind.__dict__.get("__torch_dispatch__")
        if kind in self._known or not isinstance(own, (classmethod, staticmethod)) or kind.__name__ in TRACED:
            return
        self._known.add(kind)
        original, exclude, excluded, key, include = own.__func__, self._torch._C._dispatch_tls_set_dispatch_key_excluded, \
            self._torch._C._dispatch_tls_is_dispatch_key_excluded, self._key, self._is_included

        @functools.wraps(original)
        def call(*arguments, **options):
            if not include(key) or not excluded(key):
                return original(*arguments, **options)
            exclude(key, False)
            try:
                return original(*arguments, **options)
            finally:
                exclude(key, True)

        kind.__torch_dispatch__ = type(own)(call)
