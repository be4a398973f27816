"""Copies between host and device that no call of an operator makes: torch.tensor(..., device="cuda"), what is printed, what libraries do in C++."""
import ctypes

from metaprof_recorder.values.limits import LARGEST
from metaprof_recorder.values.recipes import Version

MOST_KEPT = 1000


class Unseen:
    """`hook`: says whether this thread is in a call that is seen."""

    def __init__(self, limits, storages, answers, hook):
        self._limits, self._storages, self._answers, self._hook = limits, storages, answers, hook
        self._written = {}  # address -> version of what the host wrote there
        self._callback = None

    def listen(self, library):
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)(self._write)
        library.metaprof_emulator_on_write.argtypes = [ctypes.c_void_p]
        library.metaprof_emulator_on_write.restype = None
        library.metaprof_emulator_on_write(self._callback)

    def _write(self, at, host, count):
        if count <= LARGEST and self._limits.fits(count) and self._hook.watches:
            self._written.pop(at, None)
            self._written[at] = Version(count, self._limits).settle(ctypes.string_at(host, count))
            if len(self._written) > MOST_KEPT:
                del self._written[next(iter(self._written))]

    def take(self, tensor):
        """What the host wrote into the storage of a tensor that is met for the first time; None: nothing."""
        version = self._written.pop(tensor.untyped_storage().data_ptr(), None) if self._written else None
        return version if version is not None and version.size == tensor.untyped_storage().nbytes() else None

    def forget(self, tensor):
        """Somebody else has the memory now."""
        if self._written:
            self._written.pop(tensor.untyped_storage().data_ptr(), None)

    def read(self, at, count):
        """(the bytes that stand there, their source)."""
        found = self._storages.at(at)
        if found is None:
            return None, "unknown"
        return self._answers.content(*found, count, self._storages)
