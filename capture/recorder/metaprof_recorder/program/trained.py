"""What optimizers change."""


class Trained:
    def __init__(self):
        self._addresses = set()

    def add(self, optimizer):
        for group in getattr(optimizer, "param_groups", ()):  # none, if its constructor raised an error
            self._addresses.update(map(_address, group["params"]))
        self._addresses.discard(0)

    def has(self, module):
        """Whether a module that is not in training mode holds what an optimizer changes."""
        try:
            return not module.training and any(_address(parameter) in self._addresses for parameter in module.parameters())
        except Exception:  # noqa: BLE001 - a module may be anything
            return False


def _address(parameter):
    """Of its elements, or of its own rank's part of them; 0: nowhere."""
    try:
        return getattr(parameter, "_local_tensor", parameter).data_ptr()
    except RuntimeError:  # nothing that stands in memory
        return 0
