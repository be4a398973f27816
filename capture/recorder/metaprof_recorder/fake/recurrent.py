"""Recurrent layers: cuDNN asks the driver even for tensors without data, and PyTorch has no rule for the kernel of a single GRU cell. What they give
follows from their arguments."""

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def rule(torch, overload):
    """A function that stands for the operator; None: it is none of these."""
    schema = overload._schema
    if not schema.name.startswith("aten::") or schema.name.partition("::")[2] not in RECURRENT:
        return None
    names = [argument.name for argument in schema.arguments]

    def call(*arguments, **options):
        given = {**dict(zip(names, arguments)), **options}
        if not _is_there(given):
            return overload(*arguments, **options)
        return _results(torch, given)

    return call


def _is_there(given):
    return given.get("input", given.get("data")).is_cuda


def _results(torch, given):
    """The sequence and the last states. Gradients flow from them to all that was given."""
    packed = "data" in given
    sequence, states = given["data" if packed else "input"], given["hx"]
    states = list(states) if isinstance(states, (list, tuple)) else [states]
    dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else sequence.dtype
    width = states[0].shape[-1] * (2 if given["bidirectional"] else 1)
    leads = list(sequence.shape[:-1])
    swaps = not packed and given["batch_first"]
    if swaps:
        leads[0], leads[1] = leads[1], leads[0]
    link = sum(one.sum() for one in (sequence, *states, *given["params"]) if one.requires_grad) * 0
    made = [torch.empty([*leads, width], dtype=dtype, device=sequence.device)] + [torch.empty(one.shape, dtype=dtype, device=one.device) for one in states]
    if isinstance(link, torch.Tensor):
        made = [one + link.to(dtype) for one in made]
    if swaps:
        made[0] = made[0].transpose(0, 1)
    return tuple(made)


def _gru_cell(input_gates, hidden_gates, state, *_):
    """The new state, and what backward needs: three gates, the state and a part of a gate."""
    return state.new_empty(state.shape), state.new_empty([state.shape[0], 5 * state.shape[1]])


def _gru_cell_backward(gradient, workspace, has_bias):
    """Gradients of the gates, of the state, and of the biases."""
    rows, width = gradient.shape
    biases = [workspace.new_empty([3 * width]) if has_bias else None for _ in range(2)]
    return workspace.new_empty([rows, 3 * width]), workspace.new_empty([rows, 3 * width]), workspace.new_empty([rows, width]), *biases


CELLS = {"aten::_thnn_fused_gru_cell": _gru_cell, "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward}
