"""Which version each storage of the device holds now.

A storage is known by the address of its C++ object. Python's weak reference says when it is gone, before that address is used again. (A weak
reference of C++ would keep the storage's object of Python in PyTorch 2.6, and who counts those, as MemTracker does, would count memory that is gone.)
"""
from collections import deque
from weakref import KeyedRef

from metaprof_recorder.values.limits import SMALL


class Storages:
    def __init__(self, torch, limits, address_of_memory):
        self._storage_of = torch._C.TensorBase.untyped_storage
        self._limits, self._address_of_memory = limits, address_of_memory
        self._versions = {}    # address of the storage -> its version
        self._references = {}  # the same -> the weak reference
        self._begins = {}      # the same -> address of the memory
        self._gone = deque()   # weak references: storages end at any time, also while one of these is read

    def address(self, tensor):
        return self._storage_of(tensor)._cdata

    def version(self, address):
        """None: nothing is known of it."""
        self._forget_gone()
        return self._versions.get(address)

    def at(self, place):
        """(the version of what stands at this address of the device, how far behind its beginning); None: nothing is known of it."""
        self._forget_gone()
        for address, version in self._versions.items():
            begin = self._begins[address]
            if begin <= place < begin + version.size:
                return version, place - begin
        return None

    def computable(self):
        """{(id of a call, place): version} of those that a storage has now and that a call gives."""
        self._forget_gone()
        return {(id(version.call), version.place): version for version in self._versions.values() if version.call is not None}

    def put(self, tensor, version):
        """None: it is not known what the storage holds now."""
        self._forget_gone()
        storage = self._storage_of(tensor)
        address = storage._cdata
        if version is None:
            self.forget(address)
            return
        if address not in self._references:
            self._references[address] = KeyedRef(storage, self._gone.append, address)
            self._begins[address] = self._address_of_memory(storage)
        self._versions[address] = version

    def forget(self, address):
        """It is not known what this storage holds now."""
        if self._versions.pop(address, None) is not None:
            del self._references[address], self._begins[address]

    def _forget_gone(self):
        while self._gone:
            reference = self._gone.popleft()
            if self._references.get(reference.key) is reference:
                self.forget(reference.key)

    def make_room(self, count=0):
        """Forgets the largest values where too little fits, and then what has the longest history. Gives whether so many bytes fit."""
        self._forget_gone()
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
