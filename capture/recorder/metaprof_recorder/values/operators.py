"""What an operator does to its arguments, as far as its schema says it."""

# They replace all that a tensor holds, and do not look at it.
OVERWRITE = {"zero_", "fill_", "copy_", "_foreach_zero_", "_foreach_copy_", "normal_", "uniform_", "bernoulli_", "random_", "exponential_", "geometric_", "cauchy_",
             "log_normal_"}
UNINITIALISED = ("empty", "new_empty", "_empty_affine_quantized")  # what they give is what was there before
OF_DEVICE = ("device", "pin_memory", "generator", "layout", "non_blocking")  # options that have another meaning on the CPU, or none
WRITTEN_ALL_THE_SAME = ("running_mean", "running_var")  # normalisations whose schema does not say so
NUMBERS = (int, float, bool, complex)
# What a comparison with something that is not known gives: it equals nothing but itself, and is finite.
ASSUMED = {"eq": False, "ne": True, "isin": False, "isnan": False, "isinf": False, "isposinf": False, "isneginf": False}
FINITE = {"_amp_foreach_non_finite_check_and_unscale_": 1}  # the argument that they write to if a number is not finite
KEEP = {"scatter_", "index_copy_", "index_put_", "_index_put_impl_", "masked_fill_", "index_fill_", "masked_scatter_", "put_"}  # what they do not write to they leave as it is
COALESCE = "aten::_coalesce"  # it reads how many coordinates of a sparse tensor are different
SIZES_FOLLOW = {"_unique"}  # from data, and no tag says so
CHOOSE = ("nonzero", "masked_select", "argwhere", "unique", "_unique")  # as many elements as they are given, or fewer
READ_WITHIN = {"normal", "isin", "linalg_eig", "linalg_matrix_exp", "segment_reduce"}  # they call others, and read what those give, in order to check or to choose
CHOICES = {"topk": 1, "sort": 1, "max": 1, "min": 1, "argmax": 0, "argmin": 0, "multinomial": 0}  # where the classes are in the result


class Operator:
    def __init__(self, torch, name):
        space, _, rest = name.partition("::")
        packet, _, overload_name = rest.partition(".")
        overload = getattr(getattr(getattr(torch.ops, space), packet), overload_name or "default")
        schema, tags = overload._schema, overload.tags
        self._tensor_of = torch.tensor
        self._redispatch = overload._handle.redispatch_boxed
        self._tensors = [index for index, argument in enumerate(schema.arguments) if str(argument.type) in ("Tensor", "Optional[Tensor]")]
        base = schema.name.partition("::")[2]
        aten = schema.name.startswith("aten::")
        self.overload, self.base, self.aten = overload, base, aten
        self._writes = [(index, argument.name, argument.is_out) for index, argument in enumerate(schema.arguments)
                        if argument.alias_info is not None and argument.alias_info.is_write or argument.name in WRITTEN_ALL_THE_SAME]
        self._overwrites = aten and base in OVERWRITE
        self.names = [argument.name for argument in schema.arguments]
        makes = any(value.alias_info is None for value in schema.returns)
        self.is_view = torch.Tag.inplace_view in tags  # what changes sizes or the storage of a tensor writes to no storage
        self.keeps = aten and base in KEEP
        self._draws = torch.Tag.nondeterministic_seeded in tags
        self._dropout = next((index for index, argument in enumerate(schema.arguments) if argument.name == "dropout_p"), None)
        self.of_shape = aten and (base.endswith("_like") or base.startswith("new_"))  # of its first argument, and not of what that holds
        self.uninitialised = aten and base.startswith(UNINITIALISED)
        self.copies = aten and base in ("_to_copy", "copy_")
        self.duplicates, self.source = aten and base in ("_to_copy", "copy_", "clone"), int(base == "copy_")
        self.answers = torch.Tag.data_dependent_output in tags and bool(schema.returns) and str(schema.returns[0].type) != "Tensor"
        self.communicates = schema.name.startswith("c10d::")
        self.calls_collectives = schema.name.startswith("_c10d_functional::")  # after it has made their results
        # An operator of a library does not say whether it reads.
        self.sizes_follow = torch.Tag.dynamic_output_shape in tags or (aten and base in SIZES_FOLLOW) or (not aten and makes and not self.communicates and not self.calls_collectives)
        self.indexes = aten and "indices" in self.names and base.startswith(("index", "_index", "_unsafe_index"))
        self.chooses = self.indexes or (self.sizes_follow and (not aten or base.startswith(CHOOSE)))
        self.reads = self.copies or self.answers or self.sizes_follow or self.indexes
        self.coalesces = schema.name == COALESCE
        self.reads_within = aten and base in READ_WITHIN
        self.choice = CHOICES.get(base) if aten else None
        self.joins = aten and base.rstrip("_") in ("bitwise_and", "bitwise_or", "logical_and", "logical_or")
        self.assumed = ASSUMED.get(base) if aten else None
        self.finite = FINITE.get(base) if aten else None

    def pass_on(self, hook, keys, arguments, options):
        """What it does on the keys below."""
        for index in self._tensors:
            if index < len(arguments) and type(arguments[index]) in NUMBERS:  # x + 1: only who calls from above makes a tensor of the number
                return hook.unseen(self._with_numbers, arguments, options)
        return self._redispatch(keys, *arguments, **options)

    def _with_numbers(self, *arguments, **options):
        try:
            return self.overload(*arguments, **options)
        except RuntimeError as error:  # of some operators nobody makes a tensor of a number
            if "Unable to cast" not in str(error):
                raise
        given = list(arguments)
        for index in self._tensors:
            if index < len(given) and type(given[index]) in NUMBERS:
                given[index] = self._tensor_of(given[index], device="cpu")
        return self.overload(*given, **options)

    def draws(self, arguments):
        """Whether a call takes random numbers."""
        if self._dropout is not None:  # left out, it is 0
            return len(arguments) > self._dropout and arguments[self._dropout] != 0
        return self._draws

    def written(self, arguments, options):
        """(argument, whether what it held decides nothing) of each argument that is written to."""
        for index, name, is_out in self._writes:
            value = arguments[index] if index < len(arguments) else options.get(name)
            if value is not None:
                yield value, is_out or (index == 0 and (self._overwrites or self.keeps))
