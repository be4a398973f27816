"""Calls of flex_attention in an export.

PyTorch exports them (torch.ops.higher_order.flex_attention) but cannot save them: their block mask is a tuple of numbers, tensors
and a graph (torch/_export/serde/serialize.py, serialize_input). They are written as calls of an operator that takes tensors alone,
which metaprof knows. Functions of scores and masks are left out: compiled, they are part of one kernel and take no memory.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

_SCHEMA = ("flex_attention(Tensor query, Tensor key, Tensor value, Tensor[] block_mask, Tensor[] score_buffers, Tensor[] mask_buffers)"
           " -> (Tensor output, Tensor logsumexp, Tensor max_scores)")
_libraries: list[Any] = []  # operators live as long as the object that defined them


def _operator() -> Any:
    import torch

    if not _libraries:
        library = torch.library.Library("metaprof", "FRAGMENT")
        library.define(_SCHEMA)
        _libraries.append(library)
    return torch.ops.metaprof.flex_attention.default


@contextlib.contextmanager
def allowed_without_data() -> Iterator[None]:
    """flex_attention refuses tensors without data before it looks at their sizes; what it calls then takes them."""
    try:
        from torch.nn.attention import flex_attention as module
    except ImportError:  # before 2.5
        yield
        return
    check = getattr(module, "_validate_device", None)
    if check is None:
        yield
        return

    def validate(query: Any, *others: Any) -> None:
        if query.device.type != "meta":
            check(query, *others)

    module._validate_device = validate  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module._validate_device = check  # type: ignore[attr-defined]


def masks_without_data(module: Any) -> None:
    """Block masks that modules hold are on the device of what they mask."""
    try:
        from torch.nn.attention.flex_attention import BlockMask
    except ImportError:
        return
    for each in module.modules():
        for name, value in list(vars(each).items()):
            if isinstance(value, BlockMask):
                setattr(each, name, value.to("meta"))


def make_savable(exported: Any) -> None:
    """Writes the calls of flex_attention in an export as calls of metaprof's operator."""
    import torch

    graph = exported.graph_module.graph
    calls = [node for node in graph.nodes if node.op == "call_function" and str(node.target) == "flex_attention"]
    if not calls:
        return
    for node in calls:
        query, key, value, _, block_mask, _, _, *buffers = node.args
        mask = [each for each in block_mask[:-1] if isinstance(each, torch.fx.Node)]
        with graph.inserting_before(node):
            mask = [_without_vmap(graph, each) for each in mask]
        scores, masks = ([each for each in some if isinstance(each, torch.fx.Node)] for some in (*buffers, (), ())[:2])
        node.target = _operator()
        node.args = (query, key, value, mask, scores, masks)
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    exported.graph_module.recompile()


def _without_vmap(graph: Any, node: Any) -> Any:
    """A part of a block mask; where vmap has made it, which cannot be saved, either, a tensor like it."""
    import torch

    before, seen = [node], set()
    while before:
        one = before.pop()
        if one in seen:
            continue
        seen.add(one)
        if "functorch" in getattr(one.target, "__module__", ""):
            like = node.meta["val"]
            made = graph.call_function(torch.ops.aten.zeros.default, (list(like.shape),), {"dtype": like.dtype, "device": like.device})
            made.meta = dict(node.meta)
            return made
        before.extend(one.all_input_nodes)
    return node
