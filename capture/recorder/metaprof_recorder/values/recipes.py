"""What a recipe is made of. Recipes form a graph without circles: a version knows the call that made it, a call the versions that it took.

They hold no tensors: values are bytes, so that a program that looks through Python's objects finds no tensors but its own.
"""
BYTES_OF_CALL, BYTES_OF_REFERENCE = 600, 250  # of Python's objects, about


class Unknown(Exception):
    """What somebody asks for cannot be computed; the text says why."""


class Version:
    """What a storage holds between two writes. It has one of: `value`, its bytes, or those of one element that all have; `call`, which gives it in
    this place; neither: it is not known."""
    __slots__ = ("size", "limits", "call", "place", "value", "random", "assumed")

    def __init__(self, size, limits, call=None, place=0):
        self.size, self.limits, self.call, self.place, self.value = size, limits, call, place, None
        self.random, self.assumed = (False, False) if call is None else (call.random, call.assumed)

    def settle(self, value):
        """It is this from now on; how it came to be is forgotten."""
        self.call, self.value = None, value
        self.limits.bytes += len(value)
        return self

    @property
    def known(self):
        return self.value is not None or self.call is not None

    @property
    def depth(self):
        return 0 if self.call is None else self.call.depth

    @property
    def work(self):
        return 0 if self.call is None else self.call.path

    def __del__(self):
        if getattr(self, "value", None) is not None:  # an exception may end its construction anywhere
            self.limits.bytes -= len(self.value)


class Reference:
    """A tensor as an argument: where in which version it looks. `version` None: its shape counts alone."""
    __slots__ = ("version", "offset", "shape", "stride", "dtype")

    def __init__(self, version, tensor):
        self.version = version
        self.offset, self.shape, self.stride, self.dtype = tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


class Made:
    """A place of a call: its result of this number, which has a storage of its own."""
    __slots__ = ("number", "layout", "size")

    def __init__(self, number, tensor):
        self.number, self.layout, self.size = number, Reference(None, tensor), tensor.untyped_storage().nbytes()


class Written:
    """A place of a call: a storage that it writes to, as it was before."""
    __slots__ = ("version",)

    def __init__(self, version):
        self.version = version


class Call:
    """`versions`: those that it takes. `places`: what it gives. `draws`: from which state of the generator its random numbers come. `work`: nanoseconds;
    `path`: at least so many are needed with all that comes before it."""
    __slots__ = ("operator", "arguments", "options", "versions", "places", "draws", "depth", "work", "path", "random", "assumed", "limits", "bytes")

    def __init__(self, operator, arguments, options, versions, draws, work, limits):
        self.operator, self.arguments, self.options, self.versions, self.draws, self.limits = operator, arguments, options, versions, draws, limits
        self.places = []
        self.work = work
        self.depth = 1 + max((version.depth for version in versions), default=0)
        self.path = work + max((version.work for version in versions), default=0)
        self.random = draws is not None or any(version.random for version in versions)
        self.assumed = any(version.assumed for version in versions)
        self.bytes = BYTES_OF_CALL + BYTES_OF_REFERENCE * len(versions)
        limits.bytes += self.bytes

    def give(self, place, size):
        """The version of a storage that stands in a new place of this call."""
        self.places.append(place)
        return Version(size, self.limits, self, len(self.places) - 1)

    def add_work(self, work):
        self.work += work
        self.path += work

    def __del__(self):
        self.limits.bytes -= getattr(self, "bytes", 0)  # as above
