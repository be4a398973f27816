"""What a device says of itself, beyond torch."""
import ctypes


def emulator():
    """The emulated device's library (docs/explanation/emulator.md); None on a real one."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        library.metaprof_emulator_count.restype = ctypes.c_uint64
        library.metaprof_emulator_count.argtypes = [ctypes.c_char_p, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return library


def properties(torch, device):
    """What decides which kernels run and how much memory there is, as torch says it; what a version does not say is left out."""
    found = torch.cuda.get_device_properties(device)
    said = {"name": found.name, "memory": found.total_memory, "capability": [found.major, found.minor]}
    for word, name in (("multiprocessors", "multi_processor_count"), ("threads_per_multiprocessor", "max_threads_per_multi_processor"),
                       ("shared_memory_per_block", "shared_memory_per_block_optin")):
        if hasattr(found, name):
            said[word] = getattr(found, name)
    return said


def cudnn(torch):
    """Its version, 91900 of 9.19.0; None where this PyTorch has none."""
    try:
        return torch._C._cudnn.getVersionInt()
    except (AttributeError, RuntimeError):
        return None


def taken(torch, device):
    """Bytes in use of a device; None where nobody knows."""
    library = emulator()
    if library is not None:
        return library.metaprof_emulator_count(b"memory", device)
    try:
        free, total = torch.cuda.mem_get_info(device)
    except RuntimeError:
        return None
    return total - free
