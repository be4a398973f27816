"""Calls of operators as lines of a captured program."""
import sys

from metaprof_recorder.capture import distributed
from metaprof_recorder.capture.calls import caller
from metaprof_recorder.capture.distributed import Redistributed, awaited
from metaprof_recorder.capture.lists import Lists
from metaprof_recorder.capture.signature import Signature
from metaprof_recorder.capture.storages import Storages
from metaprof_recorder.text.arguments import real


class Operators:
    def __init__(self, capture):
        self._capture, self._tensors, self._values = capture, capture.tensors, capture.values
        self._tensor, self._dtype = capture.tensors.kind, capture.torch.dtype
        self._given_dtype = None   # the dtype that the call which is being prepared is given
        self._storages = Storages(capture)
        self._lists = Lists(capture)
        self.redistributed = None  # distributed.Redistributed of the call that runs

    # ---- what runs in the place of operators

    def kernel(self, overload):
        """What runs in place of the operator on the PreDispatch key."""
        capture, values, tensors = self._capture, self._values, self._tensors
        off = capture.dispatch.off
        signature = Signature(overload)
        compiling = capture.torch.compiler.is_compiling
        transforms, nested = capture.transforms, capture.nested
        transform = transforms.level
        run = capture.device.rule(overload) or overload

        def call(*arguments, **options):
            if transform() is not None:
                return transforms.call(overload, tensors.within([*arguments, *options.values()]), arguments, options)
            if capture.paused or not capture.running or signature.asks or compiling() or capture.is_traced():
                with off():
                    return overload(*arguments, **options)
            if nested.among(arguments, options.values()) or nested.has_kernel(overload, arguments):
                return nested.call(overload, arguments, options)
            if signature.passes_on:
                return self._pass_on(signature, overload, arguments, options)
            if signature.records_stream:
                capture.step(f"record_stream(%{values.use(arguments[0])}, {capture.modes.stream_number(arguments[1].stream_id)})")
                with off():
                    return overload(*arguments, **options)
            if signature.takes_storage and values.concern(arguments):
                return self._set_storage(overload, arguments, options)
            relevant = values.concern(arguments) or (options and values.concern(options.values()))
            if relevant:
                values.drop_held()
            texts = self._arguments(signature, arguments, options) if relevant else None
            transforms.write_nodes(capture)
            calls, used = capture.now, capture.now.used
            calls.used = []  # the operator may call functions of the program's, which are written before it
            around, self.redistributed = self.redistributed, Redistributed(arguments)
            try:
                with off() if transforms.depth == 0 else transforms.wrappers.seen(off()):
                    result = run(*arguments, **options)
            finally:
                redistributed, self.redistributed = self.redistributed, around
            calls.used = used
            transforms.note_nodes()
            own = distributed.own_sizes(signature, arguments, result)
            if redistributed.locals or own is not arguments:
                texts = self._arguments(signature, redistributed.among(own), options)
            if texts is None:
                if not tensors.some_on_device(result):
                    return result
                texts = self._arguments(signature, arguments, options)
            if signature.dtype_at is not None:
                texts += self._default_dtype(signature, arguments, options, result)
            self._write_result(signature, texts, result, transforms.frame or caller())
            return result

        return call

    def _default_dtype(self, signature, arguments, options, result):
        """What a factory's call does not say: the dtype that the program has set for such calls (`torch.set_default_dtype`)."""
        default = self._capture.torch.get_default_dtype()
        if default == self._capture.torch.float32 or len(arguments) > signature.dtype_at or "dtype" in options or result.dtype != default:
            return ""
        return f", dtype={self._capture.constants.text(default)}"

    def _write_result(self, signature, texts, result, frame):
        """Writes a call whose arguments are written already."""
        if type(result) is self._tensor and not signature.writes:
            made = self._values.text_of_made(result) + " = "
        else:
            made = self._all_made(signature, result)
        if signature.chooses_attention:
            self._capture.modes.write_attention()
        self.write(f"{made}{signature.name}({texts})", frame)
        if signature.makes_list:
            self._lists.made(result[1])

    def _set_storage(self, overload, arguments, options):
        """A storage is named by a tensor that looks into it; sizes, strides and offset are what the tensor has afterwards."""
        values = self._values
        tensor, storage = arguments[:2]
        values.drop_held()
        source, number = values.looking_into(storage._cdata), values.use(tensor)
        source = self._storages.number_of(storage) if source is None else values.use(source)
        given = f"%{number}, " + ('unknown("UntypedStorage")' if source is None else f"%{source}")
        with self._capture.dispatch.off():
            result = overload(*arguments, **options)
        place = f"{tensor.storage_offset()}, {list(tensor.shape)}, {list(tensor.stride())}"
        self.write(f"_ = aten::set_.source_Tensor_storage_offset({given}, {place})", sys._getframe(2))
        return result

    def _pass_on(self, signature, overload, arguments, options):
        """Runs an operator whose own calls stand in the program, before it. Of its results those are its own that they have not made."""
        capture, values = self._capture, self._values
        values.drop_held()
        keys = distributed.keys_below(capture.torch, overload, self._tensors.within(arguments))
        if keys is None:
            with capture.dispatch.off():
                result = overload(*arguments, **options)
        else:
            result = overload.redispatch(keys, *arguments, **options)
        if (signature.is_written or keys is None) and (values.concern(arguments) or self._tensors.some_on_device(result)):
            texts = self._arguments(signature, arguments, options)
            made = self._all_made(signature, distributed.own_results(capture, arguments, result))
            self.write(f"{made}{signature.name}({texts})", sys._getframe(2))
            for tensor in distributed.sent(capture.torch, signature.name, arguments):
                capture.call(f"step::record_stream(%{values.use(tensor)}, {capture.modes.stream_number(distributed.OF_RANKS)})")
        return result

    # ---- the text of a call

    def write(self, text, frame):
        """Writes a call of an operator, after what has changed since the last one."""
        capture = self._capture
        capture.modes.write()
        scope = capture.now.modules[-1][0]
        stack = capture.places.stack(frame)
        source = None if self._given_dtype is None else capture.dtypes.source(frame, self._given_dtype)
        self._given_dtype = None
        dtype = "" if source is None else " dtype_named" if source == "named" else f" dtype_of %{source}"
        capture.call(f"{text}{f' in m{scope}' if scope else ''}{f' at s{stack}' if stack else ''}{dtype}")

    def unchanged(self, tensor, text, goes):
        """A call that has given back its argument itself: another value of the same object. `goes`: nobody else has held the argument."""
        capture, values = self._capture, self._values
        values.drop_held()
        before = values.use(tensor)
        name = capture.now.names[id(tensor)]
        old = list(name.numbers)
        self.write(f"{values.text_of_made(tensor)} = {text.format(f'%{before}')}", sys._getframe(2))
        if goes:
            name.numbers = name.numbers[len(old):]
            capture.now.drops.setdefault(len(capture.now.calls) - 1, []).extend(old)

    def _arguments(self, signature, arguments, options):
        texts = [self._argument(signature, i, value) for i, value in enumerate(arguments)]
        for name, value in options.items():
            texts.append(f"{name}={self._argument(signature, name, value)}")
        return ", ".join(texts)

    def _argument(self, signature, which, value):
        values = self._values
        if isinstance(value, self._tensor):
            number = values.use(value)
            if which in signature.lists:
                self._lists.tell(number, value)
            # A conversion that changes nothing gives back its argument, which then has two numbers. Whoever asks it for a dtype
            # wants that of before the conversion: `norm(x.float()).type_as(x)`.
            return f"%{self._capture.now.names[id(awaited(value))].numbers[0] if which in signature.gives_dtype else number}"
        if type(value) in (list, tuple):
            if not value:
                return signature.empty.get(which, "[]")
            if any(isinstance(element, (list, tuple)) for element in value):  # collectives take lists of lists
                value = [element for some in value for element in (some if isinstance(some, (list, tuple)) else [some])]
            if any(isinstance(element, self._tensor) for element in value):
                return "[" + ", ".join("None" if element is None else f"%{values.use(element)}" for element in value) + "]"
            if which in signature.reals:
                return "[" + ", ".join(real(float(element)) for element in value) + "]"
        if type(value) is self._dtype:
            self._given_dtype = value
        return self._capture.constants.text(value)

    def _all_made(self, signature, result):
        if signature.results == 0:
            return ""
        results = result if signature.results > 1 else (result,)
        names, made, texts = self._capture.now.names, self._values.made, []
        for i, one in enumerate(results):
            if i in signature.writes:
                if isinstance(one, self._tensor) and id(one) in names:
                    names[id(one)].grad = one.requires_grad
                texts.append("_" if not isinstance(one, (list, tuple)) else "[" + ", ".join("_" for _ in one) + "]")
            elif isinstance(one, (list, tuple)):
                texts.append("[" + ", ".join(made(element) for element in one) + "]")
            else:
                texts.append(made(one))
        return ", ".join(texts) + " = "
