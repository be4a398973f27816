#include "meta/autograd/modes/autocast_on_cpu.h"

#include <algorithm>
#include <string_view>

namespace metaprof {
namespace {

// In the order of the alphabet. 2.6 to 2.15 have the same lists, but for operators that have no record.
constexpr std::string_view kLowerPrecision[] = {"_addmm_activation",
                                                "_convolution.deprecated",
                                                "_native_multi_head_attention",
                                                "addbmm",
                                                "addmm",
                                                "baddbmm",
                                                "bmm",
                                                "conv1d",
                                                "conv1d.padding",
                                                "conv2d",
                                                "conv2d.padding",
                                                "conv3d",
                                                "conv3d.padding",
                                                "conv_tbc",
                                                "conv_transpose1d",
                                                "conv_transpose2d.input",
                                                "conv_transpose3d.input",
                                                "linalg_vecdot",
                                                "linear",
                                                "matmul",
                                                "mkldnn_rnn_layer",
                                                "mm",
                                                "prelu",
                                                "scaled_dot_product_attention"};
constexpr std::string_view kFp32[] = {"_grid_sampler_2d_cpu_fallback",
                                      "_lu_with_info",
                                      "adaptive_avg_pool3d",
                                      "adaptive_max_pool3d",
                                      "avg_pool3d",
                                      "binary_cross_entropy",
                                      "binary_cross_entropy_with_logits",
                                      "cdist",
                                      "cholesky",
                                      "cholesky_inverse",
                                      "cholesky_solve",
                                      "cosine_embedding_loss",
                                      "cross_entropy_loss",
                                      "ctc_loss.IntList",
                                      "ctc_loss.Tensor",
                                      "fake_quantize_per_tensor_affine",
                                      "fft_fft",
                                      "fft_fft2",
                                      "fft_fftn",
                                      "fft_hfft",
                                      "fft_ifft",
                                      "fft_ifft2",
                                      "fft_ifftn",
                                      "fft_ihfft",
                                      "fft_irfft",
                                      "fft_irfft2",
                                      "fft_irfftn",
                                      "fft_rfft",
                                      "fft_rfft2",
                                      "fft_rfftn",
                                      "fractional_max_pool2d",
                                      "fractional_max_pool3d",
                                      "geqrf",
                                      "grid_sampler",
                                      "grid_sampler_2d",
                                      "grid_sampler_3d",
                                      "hinge_embedding_loss",
                                      "huber_loss",
                                      "inverse",
                                      "kl_div",
                                      "l1_loss",
                                      "linalg_cholesky",
                                      "linalg_cholesky_ex",
                                      "linalg_cond",
                                      "linalg_cond.p_str",
                                      "linalg_eig",
                                      "linalg_eigh",
                                      "linalg_eigvals",
                                      "linalg_eigvalsh",
                                      "linalg_householder_product",
                                      "linalg_inv",
                                      "linalg_inv_ex",
                                      "linalg_lstsq",
                                      "linalg_matrix_rank",
                                      "linalg_matrix_rank.atol_rtol_float",
                                      "linalg_matrix_rank.atol_rtol_tensor",
                                      "linalg_matrix_rank.tol_tensor",
                                      "linalg_qr",
                                      "linalg_solve",
                                      "linalg_svd",
                                      "linalg_svdvals",
                                      "linalg_tensorinv",
                                      "linalg_tensorsolve",
                                      "lu_solve",
                                      "margin_ranking_loss",
                                      "max_pool3d",
                                      "max_unpool2d",
                                      "max_unpool3d",
                                      "mse_loss",
                                      "multi_margin_loss",
                                      "multilabel_margin_loss",
                                      "multilabel_margin_loss_forward",
                                      "nanquantile",
                                      "nanquantile.scalar",
                                      "nll_loss",
                                      "nll_loss2d",
                                      "orgqr",
                                      "ormqr",
                                      "pinverse",
                                      "poisson_nll_loss",
                                      "polar",
                                      "prod",
                                      "prod.dim_Dimname",
                                      "prod.dim_int",
                                      "qr",
                                      "quantile",
                                      "quantile.scalar",
                                      "reflection_pad1d",
                                      "reflection_pad2d",
                                      "replication_pad1d",
                                      "replication_pad2d",
                                      "replication_pad3d",
                                      "smooth_l1_loss",
                                      "soft_margin_loss",
                                      "stft",
                                      "stft.center",
                                      "svd",
                                      "trace",
                                      "triangular_solve",
                                      "triplet_margin_loss",
                                      "view_as_complex"};
constexpr std::string_view kPromote[] = {"cat", "index_copy", "index_copy.dimname", "stack"};

template <size_t N>
bool lists(const std::string_view (&names)[N], std::string_view name) {
  return std::binary_search(std::begin(names), std::end(names), name);
}

}  // namespace

Autocast autocast_on_cpu(const Operator& op) {
  constexpr std::string_view kNamespace = "aten::";
  if (op.in_place || !op.name.starts_with(kNamespace)) return Autocast::none;
  const std::string_view name = std::string_view(op.name).substr(kNamespace.size());
  if (lists(kLowerPrecision, name)) return Autocast::lower_precision;
  if (lists(kFp32, name)) return Autocast::fp32;
  return lists(kPromote, name) ? Autocast::promote : Autocast::none;
}

}  // namespace metaprof
