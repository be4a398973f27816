"""The profiler's events in one line: beginnings, ends, and what the allocator did between them. Times are nanoseconds."""


class Begin:
    """An operator, node or range begins. `inputs`: tensors as (dtype, sizes, device type, address of the storage)."""
    __slots__ = ("name", "kind", "sequence", "inputs", "time")

    def __init__(self, name, kind, sequence, inputs, time):
        self.name, self.kind, self.sequence, self.inputs, self.time = name, kind, sequence, inputs, time


class Memory:
    """The allocator gave out (bytes > 0) or took back an address."""
    __slots__ = ("address", "bytes", "device", "time")

    def __init__(self, address, bytes_, device, time):
        self.address, self.bytes, self.device, self.time = address, bytes_, device, time


class End:
    """The innermost operator, node or range that has begun ends."""
    __slots__ = ("time",)

    def __init__(self, time):
        self.time = time
