"""What calls make of tensors without memory, without asking torch's rules twice.

A rule of torch for a call takes a tenth of a millisecond. Layers repeat, and so do steps: a call on tensors of the same sizes, strides, types and devices makes
what it made before. A view is asked of the meta device at once, because it looks into what it is taken of.
"""
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

PLAIN = (int, float, bool, str, type(None))  # arguments that are their own key
NEW, VIEW, OTHER = "new", "view", "other"


class Unlike(Exception):
    """An argument by which calls cannot be told apart."""


class Shapes:
    def __init__(self, torch, propagation):
        """`propagation`: torch's own rules, as a mode."""
        self._torch, self._propagation = torch, propagation
        self._kinds = {}  # of operators: NEW, VIEW or OTHER
        self._made = {}   # by operator and arguments: what is made
        self._plain = (*PLAIN, torch.dtype, torch.device, torch.layout, torch.memory_format)
        self._off = torch._C._DisableTorchDispatch

    def call(self, overload, arguments, options):
        kind = self._kinds.get(overload)
        if kind is None:
            kind = self._kinds[overload] = self._kind_of(overload)
        if kind is OTHER:
            return overload(*arguments, **options)
        if kind is VIEW:
            return self._view(overload, arguments, options)
        try:
            key = self._key((overload, self._torch.get_default_dtype(), *arguments, *options.items()))
        except Unlike:
            return overload(*arguments, **options)
        return self._new(key, overload, arguments, options)

    def _kind_of(self, overload):
        """Whether it makes new tensors alone, or one that looks into its first argument."""
        schema, torch = overload._schema, self._torch
        tensors = [str(value.type) in ("Tensor", "List[Tensor]") for value in schema.returns]
        if not tensors or not all(tensors) or torch.Tag.dynamic_output_shape in overload.tags or torch.Tag.data_dependent_output in overload.tags:
            return OTHER
        written = any(value.alias_info is not None and value.alias_info.is_write for value in schema.arguments)
        aliases = [value.alias_info is not None for value in schema.returns]
        if not any(value.alias_info is not None for value in (*schema.arguments, *schema.returns)):
            return NEW
        return VIEW if not written and aliases == [True] and str(schema.returns[0].type) == "Tensor" else OTHER

    def _key(self, values):
        return tuple([self._key_of(value) for value in values])

    def _key_of(self, value):
        kind = type(value)
        if kind is FakeTensor:
            if not self._is_usual(value):
                raise Unlike
            return value.shape, value.stride(), value.storage_offset(), value.dtype, value.fake_device
        if kind in self._plain:
            return kind, value
        if kind in (list, tuple):
            return self._key(value)
        if kind is self._torch._ops.OpOverload:
            return value
        raise Unlike

    def _is_usual(self, tensor):
        """Whether sizes, strides, type and device say all that a rule asks."""
        return tensor.constant is None and not tensor.is_complex() and tensor.layout is self._torch.strided and not tensor._is_zerotensor()

    def _view(self, overload, arguments, options):
        if type(arguments[0]) is not FakeTensor or not self._is_usual(arguments[0]):
            return overload(*arguments, **options)
        with in_kernel_invocation_manager(self._propagation):
            made = overload(*arguments, **options)
        return made if made is arguments[0] else FakeTensor(self._propagation, made, arguments[0].fake_device)

    # ---- new tensors

    def _new(self, key, overload, arguments, options):
        found = self._made.get(key)
        if found is None:
            result = overload(*arguments, **options)
            self._made[key] = self._described(result, arguments)
            return result
        if found is OTHER:
            return overload(*arguments, **options)
        kind, facts = found
        with self._off():
            made = [None if one is None else self._torch.empty_strided(one[0], one[1], dtype=one[2], device="meta") for one in facts]
        made = [None if one is None else FakeTensor(self._propagation, one, each[3]) for one, each in zip(made, facts)]
        return made[0] if kind is None else kind(made)

    def _described(self, result, arguments):
        """(list, tuple or None, what its tensors are like); OTHER: some are not as if they were made alone."""
        results = result if isinstance(result, (list, tuple)) else [result]
        kind = type(result) if isinstance(result, (list, tuple)) else None
        facts = [self._facts(one) for one in results]
        seen = [one._cdata for one in self._storages((*arguments, *results))]
        return OTHER if OTHER in facts or len(set(seen)) < len(seen) else (kind, facts)

    def _facts(self, one):
        if one is None:
            return None
        if type(one) is not FakeTensor or one.constant is not None or one.layout is not self._torch.strided or one.storage_offset():
            return OTHER
        facts = tuple(one.shape), one.stride(), one.dtype, one.fake_device
        with self._off():
            alone = self._torch.empty_strided(facts[0], facts[1], dtype=facts[2], device="meta")
        return facts if alone.untyped_storage().nbytes() == one.untyped_storage().nbytes() else OTHER

    def _storages(self, values):
        found = {}
        for value in values:
            if isinstance(value, FakeTensor):
                found[id(value)] = value.untyped_storage()
        return found.values()
