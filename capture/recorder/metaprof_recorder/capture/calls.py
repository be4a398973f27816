"""Calls in a row as they are captured, and the tensors that have names in them."""
import sys
import weakref

from metaprof_recorder.capture.refcounts import Held


def caller():
    """The frame that called who asks; None: C++ did, on a thread that has none."""
    return sys._getframe(1).f_back


class Name(weakref.ref):
    """A tensor that has names: the numbers of the values that are this object, in one list of calls."""
    __slots__ = ("calls", "key", "numbers", "last", "grad", "gone")

    def __new__(cls, tensor, died, calls, number):
        return weakref.ref.__new__(cls, tensor, died)

    def __init__(self, tensor, died, calls, number):
        super().__init__(tensor, died)
        self.calls, self.key, self.numbers, self.last, self.grad = calls, id(tensor), [number], len(calls.calls), tensor.requires_grad
        self.gone = None  # the call behind which it was dropped, although its object lives on


class Calls:
    """Calls in a row: those of the program, or of a function that runs within a backward."""

    def __init__(self, grad, stream):
        self.lines = []      # of the text; an integer stands for a cut between phases
        self.calls = []      # per call: index of its line
        self.drops = {}      # call -> numbers of values
        self.names = {}      # id of a tensor -> Name
        self.held = Held()   # names that only autograd may hold soon
        self.used = []       # names that the call which is being prepared takes or makes
        self.grad = grad     # modes, as the last call had them
        self.inference = False
        self.attention = (True, True, True, True)
        self.engine = False  # whether they are called on the engine's thread
        self.stream = stream
        self.modules = [(0, {}, 0)]  # number of the scope, how often each path was called in it, how many calls there were before
        self.open = True
        self.enclosing = None  # what a function's calls meet of the program's: functions.Body

    def exchange(self, tensors, died, swap):
        """Runs `swap`, which exchanges what two tensors are: their names go with it. It refuses tensors that anything refers to."""
        names = [self.names.pop(id(tensor), None) for tensor in tensors]
        states = [None if name is None else (name.numbers, name.last, name.grad, name.gone, self.held.forget(name)) for name in names]
        self.used = [name for name in self.used if not any(name is one for one in names)]
        del names
        try:
            result = swap()
            tensors = tensors[::-1]
        finally:
            for tensor, state in zip(tensors, states):
                if state is not None:
                    self._name_again(tensor, died, *state)
        return result

    def lines_with_drops(self):
        """Of a function that has returned."""
        lines, drops = list(self.lines), {}
        for call, numbers in self.drops.items():
            drops.setdefault(self.calls[min(call, len(self.calls) - 1)], []).extend(numbers)
        for line, numbers in drops.items():
            lines[line] += " drop " + ", ".join(f"%{number}" for number in numbers)
        return lines

    def _name_again(self, tensor, died, numbers, last, grad, gone, watched):
        name = self.names[id(tensor)] = Name(tensor, died, self, None)
        name.numbers, name.last, name.grad, name.gone = numbers, last, grad, gone
        if watched:
            self.held.watch(name)
