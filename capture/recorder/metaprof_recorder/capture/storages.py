"""Storages in a captured program that a program makes by themselves (a copy of a buffer does: copy.deepcopy): bytes, while the object lives."""
import weakref


class Storages:
    def __init__(self, capture):
        self._capture = capture
        self._known = {}  # address of the storage -> (number of its bytes' value, reference to its object)

    def number_of(self, storage):
        """The number of a storage's bytes, which no tensor looks into as far as is known. None: it is not on the device, or empty."""
        if storage.device.type != "cuda" or storage.nbytes() == 0:
            return None
        known = self._known.get(storage._cdata)
        if known is not None and known[1]() is storage:
            return known[0]
        capture, size, address = self._capture, storage.nbytes(), storage._cdata
        calls, number = capture.now, capture.values.next_number()
        capture.add(f"%{number}: u8[{size}] = aten::empty.memory_format([{size}], dtype=u8, device=device(model))")

        def died(_):
            if self._known.get(address, (None,))[0] == number:
                del self._known[address]
            if capture.running and calls.open and calls.calls:
                calls.drops.setdefault(len(calls.calls) - 1, []).append(number)

        self._known[address] = number, weakref.ref(storage, died)
        return number
