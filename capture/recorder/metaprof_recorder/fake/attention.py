"""Attention on a machine without a driver: which implementation is chosen follows from the card, which runtimes before CUDA 13 ask the driver about.

What it gives has the same sizes whichever it is; the engine chooses when it runs the program."""

ATTENTION = "aten::scaled_dot_product_attention"


def rule(torch, overload):
    """A function that stands for the operator; None: it is another one."""
    if overload._schema.name != ATTENTION:
        return None

    def call(query, key, value, *arguments, **options):
        return _result(torch, query, key, value) if query.is_cuda else overload(query, key, value, *arguments, **options)

    return call


def _result(torch, query, key, value):
    """As flash attention lays it out in memory: heads behind positions. Gradients flow from it to all that was given."""
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else query.dtype
    *batch, heads, length, _ = (1, *query.shape) if query.dim() == 3 else query.shape
    made = torch.empty([*batch, length, heads, value.shape[-1]], dtype=dtype, device=query.device).transpose(-2, -3)
    for one in (query, key, value):
        if one.requires_grad:
            made = made + (one.sum() * 0).to(dtype)
    return made.squeeze(0) if query.dim() == 3 else made
