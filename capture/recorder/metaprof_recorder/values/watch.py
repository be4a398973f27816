"""Sees every call on the device, below autograd: the program's, those of a backward, of optimizers, and those of what a compiler has made."""
import contextlib
import ctypes
import importlib
import sys

from metaprof_recorder.ranks import process_groups
from metaprof_recorder.values.assume import MOST_EXPERTS, even_choice
from metaprof_recorder.values.backward import Backward
from metaprof_recorder.values.graphs import Graphs
from metaprof_recorder.values.hook import Hook
from metaprof_recorder.values.limits import FLOPS, LARGEST, LITTLE, OF_ONE_CALL
from metaprof_recorder.values.operators import OF_DEVICE, Operator
from metaprof_recorder.values.ranks import Ranks
from metaprof_recorder.values.recipes import Call, Made, Reference, Version, Written
from metaprof_recorder.values.storages import Storages
from metaprof_recorder.values.unseen import Unseen


class Watch:
    """`hook` sees calls, `graphs` says whether they are part of a CUDA graph; `address_of_memory` where a storage
    lies: without them as on a device that runs kernels."""

    def __init__(self, torch, limits, assumptions, answers, hook=None, graphs=None, address_of_memory=None, before_call=lambda: None):
        self._torch, self._limits, self._assumptions, self._answers = torch, limits, assumptions, answers
        self._tensor, self._device = torch.Tensor, torch.device
        self._is_plain = {torch.Tensor: True, torch.nn.Parameter: True}  # whether a class calls no operators of its own below autograd
        self._storages = Storages(torch, limits, address_of_memory or torch.UntypedStorage.data_ptr)
        self._before_call = before_call
        self._modules = len(sys.modules)
        self._flops = importlib.import_module("torch.utils.flop_counter").flop_registry
        self.hook = hook or Hook(torch, self._call, self._size_within_backward)
        self._graphs = graphs or Graphs(torch, self._storages)
        self.unseen = Unseen(limits, self._storages, answers, self.hook)
        self._coordinates, self._different = Operator(torch, "aten::_indices"), Operator(torch, "aten::unique_dim")
        self._ranks = Ranks(torch, self._note_of_ranks, self._content_to_send) if process_groups.alone() else None

    def begin(self, library):
        self.hook.begin()
        self._graphs.install()
        Backward(self._torch, self.hook, self._storages).install()
        self.unseen.listen(library)

    # ---- a call

    def _call(self, operator, keys, arguments, options):
        if len(sys.modules) != self._modules:  # a library may have brought operators
            self._modules = len(sys.modules)
            self.hook.register()
        if not self._concerns(arguments, options):
            return self._pass_on(operator, keys, arguments, options)
        self._limits.called()
        self.hook.watch(False)
        try:
            self._before_call()
            if operator.is_view:
                return self._pass_on(operator, keys, arguments, options)
            if operator.uninitialised:
                result = self._pass_on(operator, keys, arguments, options)
                for tensor in self._memory(result):
                    self.unseen.forget(tensor)
                return result
            if operator.coalesces:
                return self._coalesce(operator, keys, arguments, options)
            if operator.communicates:
                return self._communicate(operator, keys, arguments, options)
            if operator.calls_collectives:
                return self._pass_on_seen(operator, keys, arguments, options)
            recipe = None if self._graphs.captures() else self._recipe(operator, arguments, options)
            if recipe is None and operator.joins and not self._graphs.captures():
                recipe = self._recipe_of_what_is_known(operator, arguments)
            if operator.reads:
                if operator.copies and self._goes_to_host(arguments, options):
                    return self._copy_to_host(operator, keys, arguments, options, recipe)
                if operator.answers:
                    return self._answer(operator, keys, arguments, options, recipe)
                if operator.sizes_follow or (operator.indexes and self._has_mask(arguments)):
                    return self._call_of_unknown_size(operator, keys, arguments, options, recipe)
            if operator.reads_within:
                return self._note(operator, arguments, options, recipe, self._pass_on_seen(operator, keys, arguments, options))
            return self._note(operator, arguments, options, recipe, self._pass_on(operator, keys, arguments, options))
        finally:
            self.hook.watch(True)

    def _concerns(self, arguments, options):
        """Whether a call takes or makes tensors of the device, and none that calls operators of its own: those are seen."""
        found = False
        for value in (*arguments, *options.values()):
            kind = type(value)
            if kind is self._device:
                found = found or value.type == "cuda"
            elif kind in (list, tuple):
                for tensor in self._flat(value):
                    if not self._plain(type(tensor)):
                        return False
                    found = found or tensor.is_cuda
            elif isinstance(value, self._tensor):
                if not self._plain(kind):
                    return False
                found = found or value.is_cuda
        return found

    def _plain(self, kind):
        found = self._is_plain.get(kind)
        if found is None:
            found = self._is_plain[kind] = kind.__torch_dispatch__ is self._torch._C._disabled_torch_dispatch_impl
        return found

    # ---- its recipe

    def _recipe(self, operator, arguments, options):
        """(a Call without places, the versions that it takes by storage); None: what it gives will not be known."""
        replaced = {id(tensor) for value, whole in operator.written(arguments, options) if whole for tensor in self._flat(value)}
        versions = {}
        for index, value in enumerate((*arguments, *options.values())):
            if operator.of_shape and index == 0:
                continue
            for tensor in self._flat(value):
                if not self._take(tensor, versions, id(tensor) in replaced):
                    return None

        work = OF_ONE_CALL + sum(version.size for version in versions.values()) // 4
        call = Call(operator, [self._reference(value, versions, not (operator.of_shape and index == 0)) for index, value in enumerate(arguments)],
                    {name: self._reference(value, versions) for name, value in options.items() if name not in OF_DEVICE},
                    [version for version in versions.values() if version.known], self._draws(options) if operator.draws(arguments) else None, work, self._limits)
        if not self._limits.fits(0):
            self._storages.make_room()
        return (call, versions) if self._limits.allows(call.depth, call.path) else None

    def _reference(self, value, versions, whole=True):
        """A value as a recipe has it. `whole`: what the tensor holds counts, not its shape alone."""
        if isinstance(value, self._tensor):
            return Reference(versions[self._storages.address(value)] if whole else None, value)
        if isinstance(value, (list, tuple)):
            return [self._reference(one, versions) for one in value]
        return "cpu" if isinstance(value, self._device) else value

    def _recipe_of_what_is_known(self, operator, arguments):
        """Of truth values that are joined with unknown ones: these decide nothing, and what is known is joined with itself."""
        tensors = self._flat(arguments)
        if len(tensors) != 2 or operator.base.endswith("_") or any(tensor.dtype != self._torch.bool for tensor in tensors):
            return None
        recipe = self._recipe(operator, (tensors[0], tensors[0]), {}) or self._recipe(operator, (tensors[1], tensors[1]), {})
        if recipe is not None:
            recipe[0].assumed = True
        return recipe

    def _take(self, tensor, versions, replaced):
        """Whether the version that a tensor looks into is known, or need not be."""
        if tensor.layout != self._torch.strided:
            return False
        address = self._storages.address(tensor)
        version = versions.get(address)
        if version is None:
            version = self._of_device(tensor, address) if tensor.is_cuda else None if replaced else self._of_host(tensor)
            if version is None:
                if not replaced:
                    return False
                version = Version(tensor.untyped_storage().nbytes(), self._limits)
            versions[address] = version
        return replaced or version.known

    def _of_device(self, tensor, address):
        version = self._storages.version(address)
        if version is None:
            version = self.unseen.take(tensor)
            if version is not None:
                self._storages.put(tensor, version)
        return version

    def _of_host(self, tensor):
        """What a tensor of the host holds now; None if it is too large."""
        if tensor.device.type != "cpu":
            return None
        storage = tensor.untyped_storage()
        count, address = storage.nbytes(), storage.data_ptr()
        if count > LARGEST:
            content = _of_equal_elements(address, count, tensor.element_size())
        elif self._limits.fits(count) or self._storages.make_room(count):
            content = ctypes.string_at(address, count) if count else b""
        else:
            content = None
        return None if content is None else Version(count, self._limits).settle(content)

    def _draws(self, options):
        """What random numbers follow from: seed and offset of the device's generator."""
        generator = options.get("generator")
        if generator is None or generator.device.type != "cuda":
            generator = self._torch.cuda.default_generators[self._torch._C._cuda_getDevice()]
        return generator.initial_seed(), generator.get_offset()

    # ---- what it gives

    def _note(self, operator, arguments, options, recipe, result):
        """Says what the storages hold after a call. Gives its result."""
        if recipe is not None:
            self._add_work(operator, arguments, options, recipe[0], result)
        seen = set()
        for value, _ in operator.written(arguments, options):
            for tensor in self._memory(value):
                address = self._storages.address(tensor)
                if address not in seen:
                    seen.add(address)
                    self._graphs.writes(address)
                    if recipe is None and operator.finite is not None and value is arguments[operator.finite]:
                        self._storages.put(tensor, self._as_it_was(address))
                        continue
                    self._storages.put(tensor, recipe and (self._copied(operator, arguments, recipe, tensor)
                                                           or recipe[0].give(Written(recipe[1][address]), recipe[1][address].size)))
        for number, tensor in enumerate(self._flat(result)):
            if self._memory(tensor) and self._storages.address(tensor) not in seen:
                self._make(operator, arguments, recipe, number, tensor)
        return result

    def _as_it_was(self, address):
        """The version that a storage keeps if numbers that are not known are finite, as they are assumed to be."""
        version = self._storages.version(address)
        content = None if version is None else self._answers.content(version, 0, version.size, self._storages)[0]
        if content is None:
            return None
        kept = Version(version.size, self._limits).settle(content)
        kept.assumed = True
        return kept

    def _make(self, operator, arguments, recipe, number, tensor):
        """A result that may have a storage of its own."""
        if recipe is not None and self._storages.address(tensor) in recipe[1]:
            return
        self.unseen.forget(tensor)
        self._graphs.writes(self._storages.address(tensor))
        version = self._assumed(operator, arguments, number, tensor, recipe is not None)
        if version is None and recipe is not None:
            version = self._copied(operator, arguments, recipe, tensor)
        if version is None and recipe is not None:
            made = Made(number, tensor)
            version = recipe[0].give(made, made.size)
        self._storages.put(tensor, version)

    def _copied(self, operator, arguments, recipe, tensor):
        """The version of the source of a copy, bit for bit, of a whole storage: nothing needs to be computed. None: it is another call."""
        if not operator.duplicates:
            return None
        source = arguments[operator.source]
        if not isinstance(source, self._tensor) or source.dtype != tensor.dtype or source.shape != tensor.shape or source.stride() != tensor.stride() \
                or source.is_conj() != tensor.is_conj() or source.is_neg() != tensor.is_neg():
            return None
        version = recipe[1].get(self._storages.address(source))
        whole = tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes() and source.untyped_storage().nbytes() == tensor.untyped_storage().nbytes()
        return version if whole and version is not None and version.known and version.size == tensor.untyped_storage().nbytes() else None

    def _add_work(self, operator, arguments, options, call, result):
        count = self._flops.get(operator.overload._overloadpacket)
        if count is not None:
            with contextlib.suppress(AssertionError):  # of shapes that torch's formula does not know (attention with fewer keys than queries)
                call.add_work(count(*arguments, **options, out_val=result) // FLOPS)

    def _assumed(self, operator, arguments, number, tensor, known):
        """A version that is assumed; None: nothing is."""
        chooses = operator.choice == number and tensor.dtype == self._torch.int64 and arguments[0].is_floating_point() and tensor.is_contiguous() and arguments[0].dim()
        if chooses and (self._assumptions.even or (not known and operator.base == "topk" and tensor.shape[-1] < arguments[0].shape[-1] <= MOST_EXPERTS)):
            content = even_choice(tensor.numel(), arguments[0].shape[-1])
        elif operator.assumed is not None and not known:
            same = len(arguments) > 1 and arguments[0] is arguments[1]
            content = bytes([operator.assumed ^ same])
        else:
            return None
        version = Version(tensor.untyped_storage().nbytes(), self._limits).settle(content)
        version.assumed = True
        return version

    def _communicate(self, operator, keys, arguments, options):
        """What ranks send each other: the schema does not say what is written to."""
        result = self._pass_on(operator, keys, arguments, options)
        known = self._ranks is not None and self._ranks.communicate(operator.base, arguments)
        for value in (*arguments, *options.values()):
            for tensor in self._memory(value) if known is False else ():
                self._storages.put(tensor, None)
        return result

    def _note_of_ranks(self, exchange, arguments, of_others):
        """`of_others`: it follows from what the other ranks are assumed to hold."""
        recipe = None if self._graphs.captures() else self._recipe(exchange, arguments, {})
        if recipe is not None and of_others:
            recipe[0].assumed = True
        self._note(exchange, arguments, {}, recipe, ())

    def _content_to_send(self, tensor):
        """A tensor's bytes, if they are there or take little to compute; else None."""
        version = self._storages.version(self._storages.address(tensor)) if tensor.is_cuda and tensor.is_contiguous() else None
        if version is None or version.work > LITTLE:
            return None
        begin = tensor.storage_offset() * tensor.element_size()
        return self._answers.content(version, begin, tensor.numel() * tensor.element_size(), self._storages)[0]

    # ---- calls that read

    @staticmethod
    def _goes_to_host(arguments, options):
        if len(arguments) > 1:  # copy_
            return not arguments[0].is_cuda and arguments[1].is_cuda
        device = options.get("device")
        return arguments[0].is_cuda and device is not None and device.type == "cpu"

    def _has_mask(self, arguments):
        return any(tensor.dtype in (self._torch.bool, self._torch.uint8) for tensor in self._flat(arguments[1]))

    def _copy_to_host(self, operator, keys, arguments, options, recipe):
        found, source = self._answers.of(recipe, self._storages)
        if found is None:
            found, source = self._answers.assumed_copy(next(tensor for tensor in self._flat(arguments) if tensor.is_cuda), source)
        with self._answers.given(source):
            result = self._pass_on(operator, keys, arguments, options)
        if found is not None:
            result.copy_(found)
        return result

    def _answer(self, operator, keys, arguments, options, recipe):
        found, source = self._answers.number(recipe, arguments[0], self._storages)
        with self._answers.given(source):
            result = self._pass_on(operator, keys, arguments, options)
        return result if found is None else found

    def _call_of_unknown_size(self, operator, keys, arguments, options, recipe):
        """What it calls is seen, too: there may be the number that it reads."""
        with self._answers.given(*self._answers.size(operator, arguments, recipe, self._storages)):
            call = self._pass_on_seen if operator.aten else self._pass_on
            result = call(operator, keys, arguments, options)
        return self._note(operator, arguments, options, recipe, result)

    def _coalesce(self, operator, keys, arguments, options):
        coordinates = self._coordinates.pass_on(self.hook, keys, arguments, {})
        recipe = None if self._graphs.captures() else self._recipe(self._different, (coordinates, 1), {})
        with self._answers.given(*self._answers.different(recipe, coordinates.shape[1], self._storages)):
            return self._pass_on(operator, keys, arguments, options)

    def _size_within_backward(self, operator, keys, arguments, options):
        if not self._concerns(arguments, options):
            return self._pass_on(operator, keys, arguments, options)
        before = self.hook.watches
        try:
            return self._call_of_unknown_size(operator, keys, arguments, options, self._recipe(operator, arguments, options))
        finally:
            self.hook.watch(before)

    def _pass_on(self, operator, keys, arguments, options):
        return operator.pass_on(self.hook, keys, arguments, options)

    def _pass_on_seen(self, operator, keys, arguments, options):
        """What the operator calls is seen, too."""
        self.hook.watch(True)
        try:
            return self._pass_on(operator, keys, arguments, options)
        finally:
            self.hook.watch(False)

    def _memory(self, value):
        """Those of the tensors whose elements stand in memory of the device."""
        return [tensor for tensor in self._flat(value) if tensor.is_cuda and tensor.layout == self._torch.strided and self._plain(type(tensor))]

    def _flat(self, value):
        if isinstance(value, self._tensor):
            return (value,)
        if isinstance(value, (list, tuple)):
            return [tensor for one in value for tensor in self._flat(one)]
        return ()


def _of_equal_elements(address, count, size):
    """The bytes of one element of a large tensor of the host, if all are alike."""
    first = ctypes.string_at(address, size)
    if count % size or ctypes.string_at(address, 64 * size) != first * 64:
        return None
    compare = ctypes.CDLL(None).memcmp
    compare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    return first if compare(address, address + size, count - size) == 0 else None  # with what lies an element further on
