"""Tensors of a device that is not there, and calls on them."""
import threading

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from metaprof_recorder.fake import attention, guards, recurrent
from metaprof_recorder.fake.backward import Engine
from metaprof_recorder.fake.shapes import Shapes
from metaprof_recorder.fake.values import Values


class FakeDevice:
    """While it is entered, a call that takes or makes tensors of the device gives tensors without memory, and others run on the host."""
    kinds = (FakeTensor,)
    calls_hooks_of_modules = False  # they are hooks of nodes, which nobody but an engine knows

    def __init__(self, torch, sources, tried=None):
        """`tried`: of numbers that nothing tells (values.py)."""
        self._torch = torch
        self._tensor, self._device = torch.Tensor, torch.device
        self._fake = Propagation(allow_fallback_kernels=False, allow_non_fake_inputs=True)
        self.shapes = Shapes(torch, self._fake)
        self._mode = Mode(self)
        self._values = Values(torch, sources, self, tried)
        self._engine = Engine(torch, lambda: self.capture.values.living())
        self._thread = None
        self._asks_a_driver = guards.asks_a_driver(torch)
        self._lent = {}  # address of a storage of the host without memory -> (that, the user's tensor that it stands for)
        self.capture = None  # of the calls, which knows the tensors that the program holds
        self._of_tensor = torch.ops.prim.device.default

    def is_here(self):
        """Whether the thread that asks is the one for which there is a device."""
        return threading.get_ident() == self._thread

    def __enter__(self):
        self._thread = threading.get_ident()
        self._fake.__enter__()
        self._mode.__enter__()
        return self

    def __exit__(self, *error):
        self._mode.__exit__(*error)
        self._fake.__exit__(*error)

    # ---- what a capture asks (capture/device.py)

    @staticmethod
    def current():
        return 0

    @staticmethod
    def stream():
        return 0

    @staticmethod
    def requested():
        return 0

    @staticmethod
    def may_be_held(tensor):
        """A view of a tensor of such a class holds what it was taken of (its rev_view_func does)."""
        return type(tensor) is FakeTensor and not getattr(tensor, "_is_param", False)

    def rule(self, overload):
        return recurrent.rule(self._torch, overload) or (attention.rule(self._torch, overload) if self._asks_a_driver else None)

    def hook_is_registered(self, tensor, hook):
        if tensor.grad_fn is not None and self.is_here():
            self._engine.hooks.append((tensor.grad_fn, tensor.output_nr, hook))

    @staticmethod
    def data_is_set(tensor, data):
        if isinstance(tensor, FakeTensor) and isinstance(data, FakeTensor):
            tensor.fake_device = data.fake_device

    def backward(self, engine, arguments, options):
        return self._engine.run(*arguments, **options) if self.is_here() else engine(*arguments, **options)

    # ---- tensors and calls

    def on_host(self, tensor):
        """A tensor like this one, on the host and without memory. One of the user's that has values lends them."""
        made = self._like(tensor, "cpu")
        if tensor.device.type == "cpu" and not isinstance(tensor, FakeTensor):
            storage = made.untyped_storage()
            self._lent[storage._cdata] = storage, tensor.detach()
        return made

    def lent(self, tensor):
        """The user's tensor whose values this one has; None: it has none."""
        return self._lent.get(tensor.untyped_storage()._cdata, (None, None))[1]

    def on_device(self, tensor):
        """A tensor of the device like this one of the host."""
        return self._like(tensor, "cuda:0")

    def _like(self, tensor, device):
        with unset_fake_temporarily():
            meta = self._torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
        return FakeTensor(self._fake, meta, self._torch.device(device))

    def call(self, overload, arguments, options):
        if overload is self._of_tensor:
            return arguments[0].fake_device
        if not self._concerns(arguments) and not self._concerns(options.values()):
            if options.get("pin_memory"):  # what pins memory is a driver
                options = {**options, "pin_memory": False}
            with unset_fake_temporarily():
                return overload(*arguments, **options)
        self.capture.paused += 1  # rules are Python of torch's own, whose calls are not the program's
        try:
            return self._values.call(overload, arguments, options)
        finally:
            self.capture.paused -= 1

    def _concerns(self, values):
        """Whether some of these are tensors without memory, or name the device."""
        for value in values:
            if isinstance(value, FakeTensor) or (type(value) is self._device and value.type == "cuda"):
                return True
            if type(value) in (list, tuple) and value and self._concerns(value):
                return True
        return False


class Propagation(FakeTensorMode):
    """From tensors without memory to those that a call makes."""
    # Whatever the program is told about the device, there is none to be prepared. Versions of torch set this, or have it as a property.
    avoid_device_init = property(lambda self: True, lambda self, value: None)


class Mode(TorchDispatchMode):
    def __init__(self, device):
        super().__init__()
        self._device_of_calls = device

    def __torch_dispatch__(self, overload, types, arguments=(), options=None):
        return self._device_of_calls.call(overload, arguments, options or {})
