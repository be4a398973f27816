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
