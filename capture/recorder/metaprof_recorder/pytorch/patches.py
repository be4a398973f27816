"""Functions of torch that are replaced for a while, or for good."""


class Patches:
    """Replaces attributes of modules and classes, and can put back what was there."""

    def __init__(self):
        self._undo = []

    def set(self, owner, name, value):
        before = vars(owner).get(name, self)  # what a class inherits is not its own
        self._undo.append(lambda: delattr(owner, name) if before is self else setattr(owner, name, before))
        setattr(owner, name, value)

    def later(self, undo):
        """`undo` is called when everything is put back."""
        self._undo.append(undo)

    def undo(self):
        """In the reverse order: what was replaced twice has its first value afterwards."""
        while self._undo:
            self._undo.pop()()
