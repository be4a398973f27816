"""When the program's own last handle of a tensor goes, although autograd still holds the tensor.

Since PyTorch 2.10 the Python object of a tensor that C++ holds, too, is referred to once more: what is left of its count of references
is the program's. Earlier versions give the object away when its last handle goes, which no count tells.
"""
import sys
import threading

OURS = 3  # references to an object that is looked at: our own, the function's that counts, and that of C++


def counts_tell(torch):
    """Whether the count of an object says that C++ holds it, too."""
    if not hasattr(torch.Tensor, "_use_count"):
        return False
    found = []
    # Numbers of nodes, by which a backward goes, are those of a thread: the program's are not taken.
    thread = threading.Thread(target=lambda: found.append(_count_tells(torch)))
    thread.start()
    thread.join()
    return found[0]


def _count_tells(torch):
    first = torch.empty(1, requires_grad=True, device="cpu")
    tensor = first * 2
    before = sys.getrefcount(tensor)
    square = tensor * tensor  # keeps it for its gradient
    return sys.getrefcount(tensor) == before + 1 and square is not None


class Held:
    """References to tensors, of which some may be held by autograd alone at any time."""

    def __init__(self):
        self._watched = []

    def watch(self, reference):
        self._watched.append(reference)

    def forget(self, reference):
        """Whether it was watched; it is no longer."""
        alive = [one for one in self._watched if one is not reference]
        was, self._watched = len(alive) < len(self._watched), alive
        return was

    def gone(self, count=sys.getrefcount):
        """Those that nobody but C++ holds; they, and those that are dead, are watched no longer."""
        found, alive = [], []
        for reference in self._watched:
            tensor = reference()
            if tensor is None:
                continue
            if count(tensor) == OURS and tensor._use_count() > 1:
                found.append(reference)
            else:
                alive.append(reference)
        self._watched = alive
        return found
