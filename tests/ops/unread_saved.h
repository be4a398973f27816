#pragma once
// Tensors that a derivative declares, as the framework's does, and that the formula reads in no example: it asks for their
// geometry alone, or reads them in a branch that no example takes (a second derivative, complex numbers, evaluation mode).

#include <string_view>

namespace metaprof {

inline constexpr std::string_view kUnreadSaved[] = {
    "aten::_embedding_bag.weight",
    "aten::_fft_r2c.self",
    "aten::_linalg_slogdet.sign",
    "aten::_scaled_dot_product_cudnn_attention.cum_seq_k",
    "aten::_scaled_dot_product_cudnn_attention.cum_seq_q",
    "aten::_scaled_dot_product_flash_attention.cum_seq_k",
    "aten::_scaled_dot_product_flash_attention.cum_seq_q",
    "aten::_thnn_fused_gru_cell.hidden_bias",
    "aten::_thnn_fused_gru_cell.hidden_gates",
    "aten::_thnn_fused_gru_cell.hx",
    "aten::_thnn_fused_gru_cell.input_bias",
    "aten::_thnn_fused_gru_cell.input_gates",
    "aten::_thnn_fused_lstm_cell.hidden_bias",
    "aten::_thnn_fused_lstm_cell.hidden_gates",
    "aten::_thnn_fused_lstm_cell.input_bias",
    "aten::_thnn_fused_lstm_cell.input_gates",
    "aten::batch_norm_backward.running_mean",
    "aten::batch_norm_backward.running_var",
    "aten::cholesky_solve.self",
    "aten::complex.imag",
    "aten::complex.real",
    "aten::cudnn_batch_norm_backward.running_mean",
    "aten::cudnn_batch_norm_backward.running_var",
    "aten::div.Tensor_mode.other",
    "aten::div.Tensor_mode.self",
    "aten::igamma.other",
    "aten::igamma.self",
    "aten::igammac.other",
    "aten::igammac.self",
    "aten::native_batch_norm_backward.running_mean",
    "aten::native_batch_norm_backward.running_var",
    "aten::ormqr.input3",
    "aten::pow.Scalar.exponent",
    "aten::sgn.result",
    "aten::sgn.self",
    "aten::special_zeta.other",
    "aten::special_zeta.self",
    "aten::triangular_solve.self",
    "aten::xlogy.Scalar_Other.self",
    "bitsandbytes::MatMul4Bit.B",
    "bitsandbytes::MatMul4Bit.absmax_code",
    "metaprof::flex_attention.block_mask",
    "metaprof::flex_attention.mask_buffers",
};

}  // namespace metaprof
