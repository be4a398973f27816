"""What the other ranks of a job give, of which one rank runs alone (`--world-size N --rank R`).

A collective gives what it would give if every rank held what this one holds: an answer that follows from it is assumed. What two
ranks send each other is read from a rank that runs beside this one; if it does not run yet, it is started.
"""
import contextlib

from metaprof_recorder.ranks import peers
from metaprof_recorder.values.recipes import Unknown

KNOWN_AT_MOST = 1 << 20   # bytes of a tensor that is sent with its values: objects, sizes, shapes
GATHERED_AT_MOST = 1 << 24


class _Schema:
    def __init__(self, name):
        self.name = name


class Exchange:
    """An operator as recipes have them (operators.Operator). `give` writes to the first `outputs` arguments, tensors of the host."""
    base, aten, keeps, of_shape, duplicates, finite = "", False, False, False, False, None

    def __init__(self, name, outputs, give, whole=True):
        self._outputs, self._whole = outputs, whole
        self.overload = give
        give._schema, give._overloadpacket = _Schema(name), None

    def written(self, arguments, options):
        return [(value, self._whole) for value in arguments[:self._outputs]]

    def draws(self, arguments):
        return False


class Ranks:
    """`note(exchange, arguments)`: takes down that a call of this operator has been made; `content(tensor)`: a tensor's bytes, or None."""

    def __init__(self, torch, note, content):
        self._torch, self._note, self._content = torch, note, content
        self._functions = {name: getattr(self, name) for name in
                           ("allreduce_", "allgather_", "_allgather_base_", "reduce_scatter_", "_reduce_scatter_base_", "alltoall_base_", "alltoall_", "broadcast_",
                            "allreduce_coalesced_", "allgather_into_tensor_coalesced_", "reduce_scatter_tensor_coalesced_", "send", "recv_")}

    def communicate(self, base, arguments):
        """False: what the call gives is not known."""
        function = self._functions.get(base)
        if function is None:
            return False
        with contextlib.suppress(Unknown):
            function(*arguments)
            return True
        return False

    # ---- collectives

    def allreduce_(self, tensors, group, operation, *_):
        size, name = self._size(group), self._name_of(operation)
        for tensor in tensors:
            if name == "SUM":
                self._write((tensor,), lambda out: out.mul_(size), whole=False)
            elif name in ("AVG", "MIN", "MAX", "BAND", "BOR"):
                self._write((tensor,), lambda out: out, whole=False)
            else:
                raise Unknown(f"a reduction by {name}")

    def allreduce_coalesced_(self, tensors, group, operation, *_):
        self.allreduce_(tensors, group, operation)

    def broadcast_(self, tensors, group, root, *_):
        for tensor in tensors:
            self._write((tensor,), lambda out: out, whole=False)

    def allgather_(self, outputs, inputs, group, *_):
        for outs, given in zip(outputs, inputs):
            self._check_size(outs)
            for out in outs:
                self._write((out, given), lambda out, given: out.copy_(given))

    def _allgather_base_(self, output, given, group, *_):
        self._check_size([output])
        size = self._size(group)
        self._write((output, given), lambda out, given: out.view(size, -1).copy_(given.reshape(1, -1)))

    def allgather_into_tensor_coalesced_(self, outputs, inputs, group, *_):
        for output, given in zip(outputs, inputs):
            self._allgather_base_(output, given, group)

    def reduce_scatter_tensor_coalesced_(self, outputs, inputs, group, operation, *_):
        for output, given in zip(outputs, inputs):
            self._reduce_scatter_base_(output, given, group, operation)

    def reduce_scatter_(self, outputs, inputs, group, operation, *_):
        rank, size, name = self._rank(group), self._size(group), self._name_of(operation)
        for out, given in zip(outputs, inputs):
            self._write((out, given[rank]), lambda out, given: out.copy_(given).mul_(size if name == "SUM" else 1))

    def _reduce_scatter_base_(self, output, given, group, operation, *_):
        rank, size, name = self._rank(group), self._size(group), self._name_of(operation)
        self._check_size([given])
        self._write((output, given), lambda out, given: out.view(-1).copy_(given.reshape(size, -1)[rank]).mul_(size if name == "SUM" else 1))

    def alltoall_base_(self, output, given, group, out_sizes, sizes, *_):
        rank, size = self._rank(group), self._size(group)
        self._check_size([output, given])

        def give(out, given):
            part = given.split(list(sizes))[rank] if sizes else given.chunk(size)[rank]
            for place in out.split(list(out_sizes)) if out_sizes else out.chunk(size):
                place.copy_(part)

        self._write((output, given), give)

    def alltoall_(self, outputs, inputs, group, *_):
        rank = self._rank(group)
        for out in outputs:
            self._write((out, inputs[rank]), lambda out, given: out.copy_(given))

    # ---- from one rank to another

    def send(self, tensors, group, receiver, tag, *_):
        for tensor in tensors:
            content = self._content(tensor) if tensor.numel() * tensor.element_size() <= KNOWN_AT_MOST else None
            peers.send(self._global(group, receiver), tag, content)

    def recv_(self, tensors, group, sender, tag, *_):
        for tensor in tensors:
            count, rank = tensor.numel() * tensor.element_size(), self._global(group, sender)
            number = peers.next_from(rank, tag)
            if count > KNOWN_AT_MOST:
                raise Unknown("it is large")
            self._write((tensor,), self._received(rank, tag, number), of_others=False)

    def _received(self, rank, tag, number):
        torch = self._torch

        def give(out):
            content = peers.receive(rank, tag, number)
            if content is None or len(content) != out.numel() * out.element_size():
                raise Unknown(f"rank {rank} does not know what it sends")
            out.copy_(torch.frombuffer(bytearray(content), dtype=out.dtype).view(out.shape))

        return give

    # ---- helpers

    def _write(self, arguments, give, whole=True, of_others=True):
        self._note(Exchange("metaprof::of_ranks", 1, give, whole), arguments, of_others)

    @staticmethod
    def _check_size(tensors):
        if sum(tensor.numel() * tensor.element_size() for tensor in tensors) > GATHERED_AT_MOST:
            raise Unknown("it is large")

    def _group(self, group):
        return self._torch.distributed.ProcessGroup.unbox(group)

    def _size(self, group):
        return self._group(group).size()

    def _rank(self, group):
        return self._group(group).rank()

    def _global(self, group, rank):
        return self._torch.distributed.get_global_rank(self._group(group), rank)

    def _name_of(self, operation):
        """"SUM"; operations have a number, which not every version says."""
        with contextlib.suppress(AttributeError, RuntimeError, ValueError):
            return self._torch.distributed.ReduceOp.RedOpType(operation.op()).name
        raise Unknown("a reduction without a name")
