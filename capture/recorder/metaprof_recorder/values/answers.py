"""What a program is told that reads, and where the answer comes from.

    computed   from what the host wrote
    random     from random numbers of the device, too: a real run draws others
    assumed    as the user says (--assume), or as the program needs it in order to go on (checks.py)
    unknown    zero: it cannot be computed, or takes too much
"""
from metaprof_recorder.values.checks import passing
from metaprof_recorder.values.evaluate import Evaluation, bytes_of, tensors_of
from metaprof_recorder.values.recipes import Unknown

COMPUTED, RANDOM, ASSUMED, UNKNOWN = "computed", "random", "assumed", "unknown"


class Answers:
    """`reads`: who notes the program's reads, and says what those of the emulated device give."""

    def __init__(self, torch, limits, assumptions, reads, sources):
        self._torch, self._limits, self._assumptions, self._reads, self._sources = torch, limits, assumptions, reads, sources

    def of(self, recipe, storages):
        """(what a call gives, the source); None if it is not known."""
        if recipe is None:
            return None, UNKNOWN
        call = recipe[0]
        try:
            result = Evaluation(self._torch, self._limits, storages.computable()).run(call)
        except Unknown:
            return None, UNKNOWN
        return result, ASSUMED if call.assumed else RANDOM if call.random else COMPUTED

    def content(self, version, begin, count, storages):
        """(the bytes of a stretch, the source); None if they are not known."""
        try:
            content = Evaluation(self._torch, self._limits, storages.computable()).content(version)[begin:begin + count]
        except Unknown:
            return None, UNKNOWN
        return bytes_of(content), ASSUMED if version.assumed else RANDOM if version.random else COMPUTED

    def given(self, source, count=None):
        """While this lasts, this thread's reads have this source; `count`: a function that gives (the number that is read, the source)."""
        return self._reads.given(source, count)

    # ---- what is assumed where nothing is known

    def assumed_copy(self, tensor, source):
        """Of a copy to the host: a mask with the first of its elements set."""
        rule = self._assumptions.rule() if tensor.dtype == self._torch.bool and tensor.dim() else None
        if rule is None:
            return None, source
        found = self._torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
        found.view(-1)[:rule.count(tensor.numel())] = True
        return found, ASSUMED

    def number(self, recipe, tensor, storages):
        """(the number that is read of a tensor, the source). What follows from an assumption gives way to what the program needs in order to go on."""
        found, source = self.of(recipe, storages)
        if found is None or source == ASSUMED:
            needed, where = self._assumed_number(tensor, source)
            if needed is not None:
                return needed, where
        return found, source

    def _assumed_number(self, tensor, source):
        rule = self._assumptions.rule()
        if rule is not None:
            return (float(rule.answer) if tensor.is_floating_point() else bool(rule.answer) if tensor.dtype == self._torch.bool else int(rule.answer)), ASSUMED
        if tensor.dtype == self._torch.bool:
            # A check of torch's own asks itself (torch.distributions); one of the program's may ask through a function of torch.
            for frame in (self._sources.asking(), self._sources.reader()):
                found = None if frame is None else passing(frame)
                if found is not None:
                    return found, ASSUMED
        return None, source

    def size(self, operator, arguments, recipe, storages):
        """(source, function) for `given`, of a call whose result has as many elements as it reads."""
        rule = self._assumptions.rule()
        if rule is not None:
            return ASSUMED, lambda: (rule.count(self._candidates(arguments)), ASSUMED)

        def count():
            found, source = self.of(recipe, storages)
            if found is None:
                chosen = self._candidates(arguments) if self._assumptions.all and operator.chooses else None
                return chosen, source if chosen is None else ASSUMED
            first = tensors_of(self._torch, found)[0]
            return first.shape[arguments[1] if operator.base == "unique_dim" else 0], source

        return UNKNOWN, count

    def different(self, recipe, most, storages):
        """(source, function) for `given`, of a call that counts the different ones of `most` columns: as many, where they are not known."""
        def count():
            found, source = self.of(recipe, storages)
            return (most, ASSUMED) if found is None else (tensors_of(self._torch, found)[0].shape[1], source)

        return UNKNOWN, count

    def _candidates(self, arguments):
        """How many elements a call chooses among: of its mask, of the scores of boxes, or of its only tensor."""
        tensors = tensors_of(self._torch, arguments)
        masks = [tensor for tensor in tensors if tensor.dtype == self._torch.bool]
        return (masks[-1:] or tensors[1:] or tensors)[0].numel()
