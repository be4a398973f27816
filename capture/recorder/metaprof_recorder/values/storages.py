"""Which version each storage of the device holds now.

A storage is known by the address of its C++ object. A weak reference of C++ keeps that address from being used again while its version is kept; it does not
keep the memory, and neither the program nor Python can see it.
"""
from metaprof_recorder.values.limits import SMALL

AT_LEAST = 4096  # storages, before those that are gone are looked for


class Storages:
    def __init__(self, torch, limits, address_of_memory):
        self._storage_of = torch._C.TensorBase.untyped_storage
        self._expired, self._release = torch.UntypedStorage._expired, torch.UntypedStorage._free_weak_ref
        self._limits, self._address_of_memory = limits, address_of_memory
        self._versions = {}    # address of the storage -> its version
        self._references = {}  # the same -> the weak reference
        self._begins = {}      # address of the memory -> address of the storage
        self._most = AT_LEAST

    def address(self, tensor):
        return self._storage_of(tensor)._cdata

    def version(self, address):
        """None: nothing is known of it."""
        return self._versions.get(address)

    def at(self, place):
        """(the version of what stands at this address of the device, how far behind its beginning); None: nothing is known of it."""
        for begin, address in self._begins.items():
            version = self._versions.get(address)
            if version is not None and begin <= place < begin + version.size and not self._expired(self._references[address]):
                return version, place - begin
        return None

    def computable(self):
        """{(id of a call, place): version} of those that a storage has now and that a call gives."""
        return {(id(version.call), version.place): version for version in self._versions.values() if version.call is not None}

    def put(self, tensor, version):
        """None: it is not known what the storage holds now."""
        storage = self._storage_of(tensor)
        address = storage._cdata
        if version is None:
            self.forget(address)
            return
        if address not in self._references:
            self._references[address] = storage._weak_ref()
            self._begins[self._address_of_memory(storage)] = address
        self._versions[address] = version
        if len(self._versions) > self._most:
            self._sweep()

    def forget(self, address):
        """It is not known what this storage holds now."""
        if self._versions.pop(address, None) is not None:
            self._release(self._references.pop(address))

    def _sweep(self):
        """Forgets storages that are gone."""
        for address, reference in list(self._references.items()):
            if self._expired(reference):
                del self._versions[address], self._references[address]
                self._release(reference)
        self._begins = {at: address for at, address in self._begins.items() if address in self._versions}
        self._most = max(AT_LEAST, 2 * len(self._versions))

    def make_room(self, count=0):
        """Forgets what is gone, and where that is not enough, the largest values, and then what has the longest history. Gives whether so many bytes fit."""
        self._sweep()
        limits = self._limits
        wanted = count + limits.most_bytes // 4
        for size, address in sorted(((len(version.value), address) for address, version in self._versions.items() if version.value is not None), reverse=True):
            if size <= SMALL or limits.fits(wanted):
                break
            self.forget(address)
        while not limits.fits(wanted) and limits.deepest > 16:
            limits.deepest //= 2
            for address, version in list(self._versions.items()):
                if version.depth > limits.deepest:
                    self.forget(address)
        return limits.fits(count)
