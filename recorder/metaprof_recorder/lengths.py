"""How long the sequences of nested tensors of jagged layout are, where the host has said it.

Offsets are on the device, and PyTorch reads them: how long the longest sequence is, how long each is (unbind). An emulated device has no
numbers but the small ones that the host wrote (docs/explanation/emulator.md). Of a list of tensors the host knows the lengths, and offsets
that were copied from it stand on the device; where they are neither, zeros are read.
"""
import functools
import itertools
import struct
import sys

from metaprof_recorder.agreement import Values


def install(torch, library, answer):
    """`library`: the emulated device's; None, on a real one: there is nothing to say."""
    if library is not None:
        Lengths(torch, library, answer).install()


class Lengths:
    """`answer(bytes)`: the next read of this thread gives these."""

    def __init__(self, torch, library, answer):
        self._torch, self._memory, self._answer = torch, Values(library), answer

    def install(self):
        module = sys.modules.get("torch.nested._internal.nested_tensor")
        if module is None:  # PyTorch has it from the beginning
            return
        from torch.nested._internal import ops
        self._watch_lists(module)
        kind = module.NestedTensor
        kind._get_max_seqlen = self._told(kind._get_max_seqlen, lambda tensor: sorted(self._of(tensor))[-1:])
        kind._get_min_seqlen = self._told(kind._get_min_seqlen, lambda tensor: sorted(self._of(tensor))[:1])
        aten, table = self._torch.ops.aten, ops.JAGGED_OPS_TABLE
        table[aten.unbind.int] = self._told(table[aten.unbind.int], self._of)
        padded = getattr(aten, "_nested_from_padded_tensor", None)
        if padded is not None:
            table[padded.default] = self._told(table[padded.default], lambda dense, offsets, *_: (self._memory.numbers(offsets) or [])[-1:])

    def _of(self, tensor, *_):
        """The lengths, or nothing where they are not known."""
        if tensor._lengths is not None:
            return self._memory.numbers(tensor._lengths) or []
        offsets = self._memory.numbers(tensor._offsets) or []
        return [end - begin for begin, end in itertools.pairwise(offsets)]

    def _told(self, function, numbers):
        @functools.wraps(function)
        def call(*arguments, **options):
            known = numbers(*arguments)
            if not known:
                return function(*arguments, **options)
            self._answer(struct.pack(f"{len(known)}q", *known))
            try:
                return function(*arguments, **options)
            finally:
                self._answer(None)

        return call

    def _watch_lists(self, module):
        original = module.jagged_from_list

        @functools.wraps(original)
        def made(tensors, offsets, *arguments, **options):
            result = original(tensors, offsets, *arguments, **options)
            if offsets is None and result[1].is_cuda:
                sizes = [tensor.shape[result[0]._ragged_idx - 1] for tensor in tensors]
                ends = [0, *itertools.accumulate(sizes)]
                self._memory.write(result[1], struct.pack(f"{len(ends)}q", *ends))
            return result

        module.jagged_from_list = made
