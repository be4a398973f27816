"""Lists of integers on the host from which sizes of results follow: lengths of sequences, batch sizes of packed ones."""


class Lists:
    def __init__(self, capture):
        self._capture = capture
        self._known = {}  # number of a value -> what that list holds, as the program's calls know it

    def tell(self, number, value):
        """Writes what a list holds that a call takes."""
        capture = self._capture
        if value.is_cuda or value.dim() != 1 or value.dtype != capture.torch.int64:
            return
        integers = self._integers(value)
        if self._known.get(number) != integers:
            self._known[number] = integers
            capture.add(f"step::integers(%{number}, {integers})")

    def made(self, value):
        """A call has made this list, and knows what it holds."""
        self._known[self._capture.now.names[id(value)].numbers[-1]] = self._integers(value)

    def _integers(self, value):
        with self._capture.dispatch.off():
            return value.tolist()
