"""What of an operator's schema the text of its calls needs."""
from metaprof_recorder.text.arguments import word

ASK_ONLY = {"aten::_has_compatible_shallow_copy_type", "aten::is_same_size", "aten::sparse_dim", "aten::dense_dim", "aten::_nnz", "aten::is_coalesced",
            "aten::sym_is_contiguous"}  # take no memory, and make nothing that a program uses
# What they call is called by the program, and is all that takes memory: flex_lib's only operator is Python (torch/_dynamo/_trace_wrapped_higher_order_op.py).
PASS_ON = ("c10d::", "_c10d_functional::", "fsdp::", "flex_lib::")
GIVE_DTYPES = {"aten::type_as", "aten::to.other"}  # the second argument says which dtype (and device) the result has
CHOOSE_ATTENTION = {"aten::scaled_dot_product_attention", "aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd"}
SIZES_FOLLOW = ("lengths", "batch_sizes")  # arguments: lists on the host that say how large results are
SIZES_OF_RESULT = ("size", "shape", "sizes")  # arguments; the last: of the dimensions from `dim` on
EMPTY_LISTS = {"List[Tensor]": "tensors[]", "List[Optional[Tensor]]": "tensors[]", "List[float]": "reals[]", "List[bool]": "booleans[]"}


class Signature:
    """What of an operator's schema its calls need."""

    def __init__(self, overload):
        schema = overload._schema
        self.name = word(overload.name())
        self.asks = self.name in ASK_ONLY
        self.records_stream = self.name == "aten::record_stream"
        self.takes_storage = self.name.startswith("aten::set_.source_Storage")
        self.gives_dtype = (1, "other") if self.name in GIVE_DTYPES else ()
        self.chooses_attention = self.name in CHOOSE_ATTENTION
        self.passes_on = self.name.startswith(PASS_ON)
        self.is_written = not self.name.startswith(("fsdp::", "flex_lib::"))
        self.results = len(schema.returns)
        self.writes = {i for i, one in enumerate(schema.returns) if one.alias_info is not None and one.alias_info.is_write}
        names = [argument.name for argument in schema.arguments]
        # A factory without a dtype takes the default one, which a program may have set.
        makes = "dtype" in names and not any("Tensor" in str(argument.type) for argument in schema.arguments)
        self.dtype_at = names.index("dtype") if makes else None
        # Sizes of the only result: where they stand, and whether they are those of all dimensions.
        self.sizes_at = next((names.index(name) for name in SIZES_OF_RESULT if name in names and len(schema.returns) == 1), None)
        self.empty = {}
        self.reals = set()
        self.lists = set()
        self.makes_list = self.name == "aten::_pack_padded_sequence"
        for i, argument in enumerate(schema.arguments):
            kind = str(argument.type)
            for which in (i, argument.name):
                if kind in EMPTY_LISTS:
                    self.empty[which] = EMPTY_LISTS[kind]
                if kind == "List[float]":
                    self.reals.add(which)
                if kind == "Tensor" and argument.name in SIZES_FOLLOW:
                    self.lists.add(which)
