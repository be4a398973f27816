"""What a program asks torch about a device that is not there, and about its tensors."""
import functools
import importlib
import logging
import types

NOTHING_TO_DO = ("synchronize", "set_device", "empty_cache", "_lazy_init", "init", "reset_peak_memory_stats", "ipc_collect")
NO_BYTES = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
CUDNN_MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}  # cudnnRNNMode_t
WARP, THREADS = 32, 2048  # of all devices since capability 5.0, but those of capability 7.5 and from 8.6 on: threads of a multiprocessor


class NoTensor:
    """In the place of the class of tensors without data, under its public name: a program that asks for it would take another way."""


def install(torch, patches, description, is_here):
    """`description`: name, capability (major, minor), memory_bytes and multiprocessors of the device. `is_here()`: whether there is one for this thread."""
    def answers_with(original, function):
        @functools.wraps(original)
        def call(*arguments, **options):
            return (function if is_here() else original)(*arguments, **options)

        return call

    def says(original, answer):
        return answers_with(original, lambda *_, **__: answer)

    patches.set(torch._subclasses, "FakeTensor", NoTensor)
    for name in ("init_gpu_context", "init_cuda_context"):  # the latter up to 2.7: it would prepare a device
        if hasattr(torch._subclasses.fake_tensor, name):
            patches.set(torch._subclasses.fake_tensor, name, says(getattr(torch._subclasses.fake_tensor, name), None))
    kind = torch._subclasses.fake_tensor.FakeTensor  # which is asked by torch in C++, and that calls a mode
    patches.set(kind, "is_cuda", property(lambda tensor: tensor.fake_device.type == "cuda" and not tensor.fake_mode.in_kernel_invocation))
    patches.set(torch.nn.Module, "_apply", _apply(torch, is_here))
    patches.set(torch.Tensor, "data_ptr", _data_ptr(torch))
    for module in ("torch.optim.optimizer", "torch.utils._foreach_utils"):
        kinds = importlib.import_module(module)._foreach_supported_types
        kinds.append(torch._subclasses.fake_tensor.FakeTensor)
        patches.later(functools.partial(kinds.remove, torch._subclasses.fake_tensor.FakeTensor))
    log = logging.getLogger("torch._subclasses.fake_tensor")  # says what a call is refused for, which is an error of the call, too
    patches.set(log, "disabled", True)
    properties = _properties(description)
    answers = {"is_available": True, "device_count": 1, "current_device": 0, "_exchange_device": 0, "_maybe_exchange_device": 0, "is_initialized": True, "is_current_stream_capturing": False,
               "mem_get_info": (description["memory_bytes"], description["memory_bytes"]), 
               "get_device_properties": properties, "get_device_name": properties.name, "get_device_capability": (properties.major, properties.minor),
               **dict.fromkeys(NOTHING_TO_DO), **dict.fromkeys(NO_BYTES, 0)}
    patches.set(torch.cuda, "is_bf16_supported", _is_bf16_supported(torch, properties.major))
    _install_cudnn(torch, patches, says, answers_with)
    for name, answer in answers.items():
        if hasattr(torch.cuda, name):
            patches.set(torch.cuda, name, says(getattr(torch.cuda, name), answer))


def _install_cudnn(torch, patches, says, answers_with):
    """What modules ask about cuDNN, of which a torch that was built for the CPU knows nothing."""
    cudnn, rnn = torch.backends.cudnn, importlib.import_module("torch.backends.cudnn.rnn")
    patches.set(cudnn, "is_available", says(cudnn.is_available, True))
    patches.set(cudnn, "is_acceptable", answers_with(
        cudnn.is_acceptable, lambda tensor: cudnn.enabled and tensor.is_cuda and tensor.dtype in cudnn.CUDNN_TENSOR_DTYPES))
    patches.set(torch, "_use_cudnn_rnn_flatten_weight", says(torch._use_cudnn_rnn_flatten_weight, True))
    patches.set(rnn, "get_cudnn_mode", answers_with(rnn.get_cudnn_mode, CUDNN_MODES.__getitem__))


def _is_bf16_supported(torch, major):
    """As torch's own, which makes a tensor the first time where bf16 is emulated (torch/cuda/__init__.py, _check_bf16_tensor_supported)."""
    asked = []

    def is_supported(including_emulation=True):
        if major < 8 and including_emulation and not asked:
            asked.append(True)
            torch.tensor([1.0], dtype=torch.bfloat16, device="cuda:0")
        return major >= 8 or including_emulation

    return is_supported


def _properties(description):
    major, minor = description["capability"]
    return types.SimpleNamespace(
        name=description["name"], major=major, minor=minor, total_memory=description["memory_bytes"],
        multi_processor_count=description["multiprocessors"], warp_size=WARP, max_threads_per_multi_processor=THREADS,
        is_integrated=False, is_multi_gpu_board=False, gcnArchName="")


def _data_ptr(torch):
    original, kind = torch.Tensor.data_ptr, torch._subclasses.fake_tensor.FakeTensor

    @functools.wraps(original)
    def address(tensor):
        """Where no memory is: storages have addresses of their own."""
        if not isinstance(tensor, kind):
            return original(tensor)
        return torch._C._storage_address(tensor) + tensor.storage_offset() * tensor.element_size()

    return address


def _apply(torch, is_here):
    """As torch's own does with tensors of a device. With those without data it makes new parameters, and what was one is two."""
    original = torch.nn.Module._apply

    @functools.wraps(original)
    def apply(module, function, recurse=True):
        if not is_here():
            return original(module, function, recurse)
        for child in module.children() if recurse else ():
            child._apply(function)
        for parameter in module._parameters.values():
            if parameter is not None:
                with torch.no_grad():
                    parameter.data = function(parameter)
                if parameter.grad is not None:
                    with torch.no_grad():
                        parameter.grad.data = function(parameter.grad)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = function(buffer)
        return module

    return apply
