"""What CUDA graphs do: nothing is computed while one is captured, and a replay writes again, unseen, to all that was written meanwhile."""
import functools


class Graphs:
    def __init__(self, torch, storages):
        self._torch, self._storages = torch, storages
        self.captures = torch._C._cuda_isCurrentStreamCapturing
        self._written = set()  # addresses of storages

    def install(self):
        kind = self._torch.cuda.CUDAGraph
        original = kind.replay

        @functools.wraps(original)
        def replay(graph):
            original(graph)
            for address in self._written:
                self._storages.forget(address)

        kind.replay = replay

    def writes(self, address):
        """A call writes to this storage."""
        if self.captures():
            self._written.add(address)
