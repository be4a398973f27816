"""Operators of the device on the CPU: those that it does not have are computed with others."""


def on_cpu(torch, overload, arguments, options):
    substitute = SUBSTITUTES.get(overload._schema.name)
    if substitute is not None:
        return substitute(torch, *arguments, **options)
    try:
        return overload(*arguments, **options)
    except NotImplementedError:
        from torch._decomp import decomposition_table
        if overload not in decomposition_table:
            raise
        return decomposition_table[overload](*arguments, **options)


def _attention(torch, query, key, value, bias=None, dropout=0.0, causal=False, scale=None):
    repeat = query.size(-3) // key.size(-3) if query.dim() > 2 else 1
    if repeat > 1:
        key, value = key.repeat_interleave(repeat, -3), value.repeat_interleave(repeat, -3)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, bias, dropout, causal, scale=scale).contiguous()


def _flash(torch, query, key, value, dropout=0.0, causal=False, return_debug_mask=False, *, scale=None):
    return _attention(torch, query, key, value, None, dropout, causal, scale)


def _efficient(torch, query, key, value, bias, log_sum_exp, dropout=0.0, causal=False, *, scale=None):
    return _attention(torch, query, key, value, bias, dropout, causal, scale)


def _cudnn(torch, query, key, value, bias, log_sum_exp, dropout=0.0, causal=False, return_debug_mask=False, *, scale=None):
    return _attention(torch, query, key, value, bias, dropout, causal, scale)


def _batch_norm(torch, input, weight, bias, running_mean, running_var, training, factor, epsilon):
    return torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, factor, epsilon)


def _cudnn_rnn(torch, input, weights, stride, buffer, hidden, cell, mode, hidden_size, projection, layers, batch_first, dropout, train, bidirectional, sizes, dropout_state):
    """Modes of cuDNN: 0 ReLU, 1 tanh, 2 LSTM, 3 GRU."""
    function = (torch.rnn_relu, torch.rnn_tanh, torch.lstm, torch.gru)[mode]
    states = [hidden, cell] if mode == 2 else hidden
    if sizes:
        result = function(input, torch.tensor(sizes), states, weights, stride > 2, layers, dropout, train, bidirectional)
    else:
        result = function(input, states, weights, stride > 2, layers, dropout, train, bidirectional, batch_first)
    return result


def _histc(torch, input, bins=100, min=0, max=0):
    """The CPU has none of integers."""
    return torch.histc(input.double(), bins, min, max).to(input.dtype)


SUBSTITUTES = {
    "aten::histc": _histc,
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::cudnn_batch_norm": _batch_norm,
    "aten::_cudnn_rnn": _cudnn_rnn,
}
