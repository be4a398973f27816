"""Symmetric memory of a rank that runs alone.

Ranks of one machine can read each other's symmetric memory, as asynchronous tensor parallelism does. A rank alone reads its own in the place of the others',
as a collective gives it what it would if all ranks held the same. Whoever waits for another rank goes on at once.
"""


class Memory:
    """In the place of torch's handle of a tensor that all ranks of a group have. It has what can be asked from Python."""

    def __init__(self, torch, tensor, rank, world_size):
        self._torch, self._tensor = torch, tensor
        self.rank, self.world_size = rank, world_size
        self.buffer_size = tensor.untyped_storage().nbytes()

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        buffer = self._torch.empty(0, dtype=dtype, device=self._tensor.device)
        return buffer.set_(self._tensor.untyped_storage(), storage_offset, tuple(sizes))

    get_remote_tensor = get_buffer

    def barrier(self, channel=0, timeout_ms=0):
        pass

    put_signal = wait_signal = lambda self, rank, channel=0, timeout_ms=0: None


class Memories:
    """What a program asks torch.distributed._symmetric_memory, which it has imported."""

    def __init__(self, torch, module):
        self._torch, self._module, self._owner = torch, module, module._SymmetricMemory
        self._allocate = self._owner.empty_strided_p2p
        self._groups = {}  # address of memory -> its group, if that was said when it was made

    def represent(self):
        self._module.enable_symm_mem_for_group = self._enable
        self._owner.empty_strided_p2p, self._owner.rendezvous = staticmethod(self._made), staticmethod(self._meet)

    def _enable(self, group_name):
        """No other rank answers, so nobody is asked."""
        from torch.distributed import HashStore
        if group_name not in self._module._group_name_to_store:
            store = self._module._group_name_to_store[group_name] = HashStore()
            self._owner.set_group_info(group_name, *self._place(group_name), store)

    def _place(self, group_name):
        group = self._torch.distributed.distributed_c10d._resolve_process_group(group_name)
        return group.rank(), group.size()

    def _made(self, size, stride, dtype, device, group_name=None, alloc_id=None):
        tensor = self._allocate(size, stride, dtype, device, group_name, alloc_id)
        self._groups[tensor.data_ptr()] = group_name
        return tensor

    def _meet(self, tensor, group_name=None):
        """None: it is no symmetric memory."""
        address = tensor.untyped_storage().data_ptr()
        if address not in self._groups:
            return None
        return Memory(self._torch, tensor, *self._place(group_name or self._groups[address]))
