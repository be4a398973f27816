"""What the host reads of the device: what it would read, where recipes tell (values/), else the program is refused there."""
import contextlib

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, UnsupportedOperatorException, unset_fake_temporarily

from metaprof_recorder.fake.recurrent import CELLS
from metaprof_recorder.values.answers import Answers
from metaprof_recorder.values.assume import Assumptions
from metaprof_recorder.values.cpu import on_cpu
from metaprof_recorder.values.limits import Limits
from metaprof_recorder.values.operators import Operator
from metaprof_recorder.values.recipes import Call, Made
from metaprof_recorder.values.watch import Watch

MOST_BY_HOST = 1 << 30  # bytes
HOST_RESULTS = {"aten::_pack_padded_sequence": (1,)}  # which the schema does not say: sizes of batches
UNKNOWN = (DataDependentOutputException, DynamicOutputShapeException)


def _flattened(weights, *_):
    """cuDNN's own buffer of the weights of a recurrent layer, which they look into afterwards. Its sizes are theirs without padding."""
    return weights[0].new_empty(sum(weight.numel() for weight in weights))


def _grouped_product(a, b, offsets=None, bias=None, out_dtype=None):
    """Products of groups of rows. The rule for tensors without data refuses types that the device takes."""
    leading = {(2, 3): a.shape[:1], (3, 2): a.shape[1:2], (3, 3): a.shape[:2]}
    groups = (offsets.shape[0], a.shape[0]) if a.dim() == b.dim() == 2 else leading[a.dim(), b.dim()]
    return a.new_empty([*groups, b.shape[-1]], dtype=out_dtype or a.dtype)


LONGEST_BY_CUDNN = 256  # targets of cuDNN's CTC loss


def _uses_cudnn_for_ctc(scores, targets, input_lengths, target_lengths, blank):
    """ATen/native/cudnn/LossCTC.cpp: for targets of one dimension, of int32 and on the host, of equally long inputs."""
    kind = targets.dtype.itemsize == 4 and not targets.is_floating_point()
    if blank != 0 or targets.dim() != 1 or not kind or targets.is_cuda or scores.dim() != 3 or scores.dtype.itemsize != 4:
        return False
    longest = scores.shape[0]
    return all(int(length) == longest for length in input_lengths) and all(int(length) <= LONGEST_BY_CUDNN for length in target_lengths)


RULES = {  # in place of torch's own
    "aten::_cudnn_rnn_flatten_weight": _flattened, "aten::_grouped_mm": _grouped_product, **CELLS,
    "aten::_use_cudnn_ctc_loss": _uses_cudnn_for_ctc, "aten::_use_miopen_ctc_loss": lambda *_: False}


# What stands for a number that nothing tells: a small one, then a large one. If the steps are the same with both, they do not depend on it,
# as far as two answers can tell.
REALS, INTEGERS, CONDITIONS = (2.0**-20, 2.0**20), (1, 1 << 20), (False, True)


class Refused(Exception):
    """What cannot be captured: where, what, and what to do, in one line."""


class Unread(Refused):
    """A number of the device is read that nothing tells."""


class Values:
    def __init__(self, torch, sources, device, tried=None):
        """`tried`: which of the two numbers is told where nothing tells one; None: the program is refused there."""
        limits = Limits("")
        assumptions = Assumptions("", sources)
        answers = Answers(torch, limits, assumptions, None, sources)
        self._watch = FakeWatch(torch, limits, assumptions, answers, sources, device, tried)
        self._torch, self._sources, self._device = torch, sources, device
        self._operators = {}

    def call(self, overload, arguments, options):
        operator = self._operators.get(overload)
        if operator is None:
            operator = self._operators[overload] = FakeOperator.of(self._torch, overload, self._device)
        try:
            if operator.only_looks:
                return self._device.shapes.call(overload, arguments, options)
            if operator.rule is not None:
                return operator.rule(*arguments, **options)
            return self._watch._call(operator, None, arguments, options)
        except UNKNOWN:
            if operator.reads_data:
                raise Refused(read(self._sources, overload)) from None
            return self._by_host(operator, arguments, options)
        except Refused:
            raise
        except (UnsupportedOperatorException, RuntimeError, NotImplementedError) as error:
            if operator.reads_data:
                raise
            return self._by_host(operator, arguments, options, error)

    def _by_host(self, operator, arguments, options, error=None):
        """What a call gives that has no rule for tensors without data, or a wrong one: by a call on tensors of the host, whose own are true."""
        error = error or Refused(f"{place(self._sources)}: {operator.overload} has no rule for tensors without data; "
                                 "metaprof run executes the program itself, and a function that calls backward keeps on the host what it has there")
        if sum(tensor.untyped_storage().nbytes() for tensor in self._fakes((*arguments, *options.values()))) > MOST_BY_HOST:
            raise error
        given = {}  # id of a tensor of the device -> (it, that of the host)
        try:
            with unset_fake_temporarily():
                found = on_cpu(self._torch, operator.overload, self._on_host(arguments, given), {
                    name: self._on_host(value, given) for name, value in options.items()})
        except Exception:  # noqa: BLE001 - it is no call of the host's, either
            raise error from None
        back = {id(host): fake for fake, host in given.values()}
        on_host = HOST_RESULTS.get(operator.overload._schema.name, ())
        results = found if isinstance(found, (list, tuple)) else [found]
        made = [back[id(one)] if id(one) in back else one if i in on_host else self._watch._on_device(one) for i, one in enumerate(results)]
        return type(found)(made) if isinstance(found, (list, tuple)) else made[0]

    def _fakes(self, values):
        for value in values:
            if isinstance(value, FakeTensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from self._fakes(value)

    def _on_host(self, value, given):
        if isinstance(value, FakeTensor):
            if id(value) not in given:
                given[id(value)] = value, self._torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu").zero_()
            return given[id(value)][1]
        if isinstance(value, (list, tuple)):
            return [self._on_host(one, given) for one in value]
        return self._torch.device("cpu") if isinstance(value, self._torch.device) else value


class FakeOperator(Operator):
    @staticmethod
    def of(torch, overload, device):
        return FakeOperator(torch, overload.name(), device) if hasattr(overload, "_schema") else HigherOrder()

    def __init__(self, torch, name, device):
        super().__init__(torch, name)
        self._device = device
        schema = self.overload._schema
        makes = not schema.returns or any(value.alias_info is None for value in schema.returns)
        writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments)
        self.only_looks = not (makes or writes)
        self.rule = RULES.get(schema.name)
        self.reads_data = self.answers or torch.Tag.dynamic_output_shape in self.overload.tags

    def pass_on(self, hook, keys, arguments, options):
        if self.base == "_to_copy" and not isinstance(arguments[0], FakeTensor):
            arguments = self._device.on_host(arguments[0]), *arguments[1:]  # up to 2.8, torch would copy to a real device
        return self._device.shapes.call(self.overload, arguments, options)


class HigherOrder:
    """An operator whose arguments are functions: what they call is seen."""
    only_looks = reads_data = True
    rule = None


class FakeWatch(Watch):
    """The device has no data to give: where the host reads, the answer stands for the read."""

    def __init__(self, torch, limits, assumptions, answers, sources, device, tried):
        super().__init__(torch, limits, assumptions, answers, NoHook(), NoGraphs(), lambda storage: storage._cdata)
        self._is_plain[FakeTensor] = True
        self._sources, self._fake, self._tried = sources, device, tried
        self._draw = 0

    def _draws(self, options):
        self._draw += 1
        return 0, self._draw

    def _of_host(self, tensor):
        if not isinstance(tensor, FakeTensor):
            return super()._of_host(tensor)
        lent = self._fake.lent(tensor) if tensor.device.type == "cpu" else None
        if lent is None:
            return None
        call = Call(Lent(lent), [], {}, [], None, 0, self._limits)
        return call.give(Made(0, tensor), tensor.untyped_storage().nbytes())

    def _copy_to_host(self, operator, keys, arguments, options, recipe):
        found, source = self._answers.of(recipe, self._storages)
        if found is None:
            found, _ = self._answers.assumed_copy(next(tensor for tensor in self._flat(arguments) if tensor.is_cuda), source)
        if found is None:
            return operator.pass_on(self.hook, keys, arguments, options)
        if operator.base == "copy_":
            with unset_fake_temporarily():
                return arguments[0].copy_(found)
        return found

    def _answer(self, operator, keys, arguments, options, recipe):
        found, _ = self._answers.number(recipe, arguments[0], self._storages)
        return self._tried_number(operator, arguments) if found is None else found

    def _tried_number(self, operator, arguments):
        if self._tried is None or not isinstance(arguments[0], self._tensor):
            raise Unread(read(self._sources, operator.overload))
        dtype = arguments[0].dtype
        pair = CONDITIONS if dtype == self._torch.bool else REALS if dtype.is_floating_point else INTEGERS
        self._fake.capture.warn(f"{place(self._sources)}: {operator.overload} reads data of the device that nothing tells, taken to be {pair[self._tried]}")
        return pair[self._tried]

    def _call_of_unknown_size(self, operator, keys, arguments, options, recipe):
        found, _ = self._answers.of(recipe, self._storages)
        if found is None:
            result = operator.pass_on(self.hook, keys, arguments, options)
        else:
            result = self._on_device(found)
        return self._note(operator, arguments, options, recipe, result)

    def _on_device(self, found):
        if isinstance(found, self._tensor):
            return self._fake.on_device(found)
        return type(found)(self._on_device(one) for one in found) if isinstance(found, (list, tuple)) else found


class Lent:
    """In the place of an operator, and of its overload: gives a tensor of the user's, when somebody asks for its values."""
    keeps = False
    name = ""
    overload = _schema = property(lambda self: self)

    def __init__(self, tensor):
        self._tensor = tensor

    def __call__(self):
        return self._tensor

    @staticmethod
    def written(arguments, options):
        return ()


class NoHook:
    """Calls come from a dispatch mode, which is off within a call."""
    watches = begun = True

    def watch(self, on):
        pass

    def register(self):
        pass


class NoGraphs:
    @staticmethod
    def captures():
        return False

    def writes(self, address):
        pass


def place(sources):
    """FILE:LINE of the user's own that is at work, or of a library."""
    frame = library = None
    for line in sources.lines():
        library, frame = library or line, line
    return frame or library or "the program"


def read(sources, overload):
    lines = list(sources.lines())
    where = lines[0] if lines else "the program"
    return f"{where}: {overload} reads data of the device that nothing tells without running the program: metaprof run, or @metaprof.capture, with --assume"
