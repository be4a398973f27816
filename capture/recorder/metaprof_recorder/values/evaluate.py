"""Computes what a recipe stands for, on the CPU."""
import ctypes
import threading

from metaprof_recorder.values.cpu import on_cpu
from metaprof_recorder.values.limits import LARGEST
from metaprof_recorder.values.recipes import BYTES_OF_CALL, Made, Reference, Unknown, Written

LARGE_SEED = (1 << 63) - 1


class Evaluation:
    """One question. `living`: the versions that storages have now, by the call that gives them: their values are kept."""

    def __init__(self, torch, limits, living):
        self._torch, self._limits, self._living = torch, limits, living
        self._results = {}  # id of a call -> for each of its places (bytes as a tensor, which of them are known or None: all)
        self._used = {}     # id of a call -> which of its places somebody asks for

    def content(self, version):
        """The bytes of a version as a tensor."""
        if version.call is not None:
            self._used[id(version.call)] = {version.place}
            self.run(version.call)
        content, known = self._buffer(version, False)
        if known is not None and not bool(known.all()):
            raise Unknown("a part of it was never written")
        return content

    def run(self, call):
        """What this call gives on the CPU."""
        found = []
        # A thread of its own has none of the program's modes, and neither its profiler nor its numbers of nodes.
        thread = threading.Thread(target=self._run_in_thread, args=(call, found), name="metaprof")
        thread.start()
        thread.join()
        result = found.pop()
        if not isinstance(result, Unknown):
            return result
        try:
            raise result
        finally:
            # The error knows this frame, and the frames that called it with the program's tensors: they must not know the error.
            del result

    def _run_in_thread(self, call, found):
        torch, generator = self._torch, self._torch.default_generator
        try:
            with torch.no_grad():
                state, threads = generator.get_state(), torch.get_num_threads()
                torch.set_num_threads(1)  # a team of threads for one answer costs more than it gives
                try:
                    found.append(self._compute(call))
                finally:
                    torch.set_num_threads(threads)
                    generator.set_state(state)
        except Unknown as error:
            found.append(error)
        except Exception as error:  # noqa: BLE001 - an operator may do anything with what it is given
            found.append(Unknown(f"{type(error).__name__}: {error}"))

    def _compute(self, last):
        order = self._order(last)
        work = sum(call.work for call in order)
        if not self._limits.spend(work):
            raise Unknown("it takes too much to compute")
        last_use = {id(version.call): number for number, call in enumerate(order) for version in call.versions if version.call is not None}
        ends = {}
        for key, number in last_use.items():
            ends.setdefault(number, []).append(key)
        for number, call in enumerate(order):
            result = self._call(call)
            for key in ends.get(number, ()):
                self._settle(key)
                del self._results[key]
        self._settle(id(last))
        return result

    def _order(self, last):
        """The calls that this one needs, and itself: each after those that it needs."""
        order, seen, waiting = [], set(), [(last, False)]
        while waiting:
            call, ready = waiting.pop()
            if ready:
                order.append(call)
            elif id(call) not in seen:
                seen.add(id(call))
                waiting.append((call, True))
                for version in call.versions:
                    if version.call is not None:
                        self._used.setdefault(id(version.call), set()).add(version.place)
                        waiting.append((version.call, False))
        return order

    def _settle(self, key):
        """Keeps what a call gave to storages that live: what was asked for, and what is smaller than a recipe. An operator on a list of tensors is then
        computed once, however many of them are read."""
        used = self._used.get(key, ())
        for place, found in enumerate(self._results[key]):
            version = self._living.get((key, place))
            if version is None or found is None or found[1] is not None:
                continue
            count = found[0].numel()
            if count <= (LARGEST if place in used else BYTES_OF_CALL) and self._limits.fits(count):
                version.settle(bytes_of(found[0]))

    # ---- one call

    def _call(self, call):
        torch = self._torch
        writes = [(reference, whole) for value, whole in call.operator.written(call.arguments, call.options) for reference in references(value)]
        written = {id(reference.version) for reference, _ in writes}
        buffers = {}
        overwritten = {id(reference) for reference, whole in writes if whole}

        def tensor(reference):
            version = reference.version
            if version is None:
                return torch.empty_strided(reference.shape, reference.stride, dtype=reference.dtype, device="cpu")
            if id(version) not in buffers:
                buffers[id(version)] = self._buffer(version, id(version) in written)
            content, known = buffers[id(version)]
            if known is not None and id(reference) not in overwritten and not bool(looked_at(known, reference, True).all()):
                raise Unknown("a part of it was never written")
            return looked_at(content, reference)

        arguments, options = with_tensors(call.arguments, tensor), {name: with_tensors(value, tensor) for name, value in call.options.items()}
        if call.draws is not None:
            torch.default_generator.manual_seed((call.draws[0] * 1_000_003 + call.draws[1]) & LARGE_SEED)
        if call.operator.keeps:
            self._find_what_is_kept(call, buffers, arguments, options)
        result = on_cpu(torch, call.operator.overload, arguments, options)
        for reference, _ in writes:
            known = buffers[id(reference.version)][1]
            if known is not None and not call.operator.keeps:
                looked_at(known, reference, True).fill_(True)
        flat = tensors_of(torch, result)
        self._results[id(call)] = [(self._laid_out(place, flat), None) if type(place) is Made and place.number < len(flat) else
                                   buffers.get(id(place.version)) if type(place) is Written else None for place in call.places]
        return result

    def _find_what_is_kept(self, call, buffers, arguments, options):
        """Which bytes an operator writes to that leaves the others as they are: those that are the same whatever was there before."""
        content, known = buffers[id(call.arguments[0].version)]
        if known is None:
            return
        before = content.clone()
        on_cpu(self._torch, call.operator.overload, arguments, options)
        written = content.clone()
        content.copy_(~before)
        on_cpu(self._torch, call.operator.overload, arguments, options)
        known |= written == content
        content.copy_(before)

    def _buffer(self, version, own):
        """The bytes of a version; `own`: they will be written to."""
        torch = self._torch
        if version.call is not None and id(version.call) in self._results:
            found = self._results[id(version.call)][version.place]
            if found is None:
                raise Unknown("the CPU does not give this")
            return tuple(None if part is None else part.clone() for part in found) if own else found
        if version.value is not None:
            content = torch.frombuffer(bytearray(version.value), dtype=torch.uint8) if version.value else torch.empty(0, dtype=torch.uint8)
            return (content if len(version.value) >= version.size else content.repeat(version.size // len(version.value))), None
        if not own:
            raise Unknown("nobody knows what was written there")
        return torch.zeros(version.size, dtype=torch.uint8), torch.zeros(version.size, dtype=torch.bool)

    def _laid_out(self, place, results):
        result, layout = results[place.number], place.layout
        if result.shape != layout.shape or result.dtype != layout.dtype:
            raise Unknown(f"the CPU gives {list(result.shape)} of {result.dtype}, the device {list(layout.shape)} of {layout.dtype}")
        content = self._torch.zeros(place.size, dtype=self._torch.uint8)
        looked_at(content, layout).copy_(result)
        return content


def looked_at(content, reference, as_mask=False):
    """A storage's bytes as a tensor looks at them; or, of a mask with a truth value for each byte, those of the elements' first bytes."""
    size = reference.dtype.itemsize
    whole = content[:content.numel() // size * size]
    typed = whole[::size] if as_mask else whole.view(reference.dtype)
    stride = [size * step for step in reference.stride] if as_mask else reference.stride
    return whole.as_strided(reference.shape, stride, size * reference.offset) if as_mask else typed.as_strided(reference.shape, stride, reference.offset)


def references(value):
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from references(one)


def with_tensors(value, tensor):
    if isinstance(value, Reference):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        return [with_tensors(one, tensor) for one in value]
    return value


def tensors_of(torch, value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for one in value for tensor in tensors_of(torch, one)]
    return []


def bytes_of(content):
    """Of a tensor of bytes."""
    return ctypes.string_at(content.data_ptr(), content.numel())
