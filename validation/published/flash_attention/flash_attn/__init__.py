"""FlashAttention 2 by PyTorch's own copy of its kernels, for machines on which flash-attn does not build.

Both allocate the same tensors: the result and the log-sum-exp forward, an accumulator of the query's gradient and, if several query heads
share a key, expanded gradients of keys and values backward. Keys and values are not repeated, which scaled_dot_product_attention does.
"""
import torch

__version__ = "2.7.3"


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, **_):
    """q: [batch, tokens, heads, size]; k and v may have fewer heads. A window is taken to be no shorter than the tokens."""
    return torch.ops.aten._flash_attention_forward(q, k, v, None, None, q.size(1), k.size(1), dropout_p, causal, False, scale=softmax_scale)[0]


def flash_attn_varlen_func(*_, **__):
    raise NotImplementedError("packed samples of one length have no padding")
