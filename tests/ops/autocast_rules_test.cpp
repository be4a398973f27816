// Which operators autocast casts, and to what: the lists of aten/src/ATen/autocast_mode.h (PyTorch 2.11)
// against the records. Operators without a record are no failure here.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "meta/ops/all.h"

namespace metaprof {
namespace {

const std::set<std::string> kLowerPrecision = {"_convolution",
                                               "_convolution.deprecated",
                                               "conv1d",
                                               "conv2d",
                                               "conv3d",
                                               "conv_tbc",
                                               "conv_transpose1d",
                                               "conv_transpose2d.input",
                                               "conv_transpose3d.input",
                                               "convolution",
                                               "prelu",
                                               "addmm",
                                               "addmv",
                                               "addr",
                                               "matmul",
                                               "einsum",
                                               "mm",
                                               "mv",
                                               "linalg_vecdot",
                                               "linear",
                                               "addbmm",
                                               "baddbmm",
                                               "bmm",
                                               "chain_matmul",
                                               "linalg_multi_dot",
                                               "_thnn_fused_lstm_cell",
                                               "_thnn_fused_gru_cell",
                                               "lstm_cell",
                                               "gru_cell",
                                               "rnn_tanh_cell",
                                               "rnn_relu_cell",
                                               "_scaled_dot_product_flash_attention",
                                               "scaled_dot_product_attention"};

const std::set<std::string> kFp32 = {"acos",
                                     "asin",
                                     "cosh",
                                     "erfinv",
                                     "exp",
                                     "expm1",
                                     "log",
                                     "log10",
                                     "log2",
                                     "log1p",
                                     "reciprocal",
                                     "rsqrt",
                                     "sinh",
                                     "tan",
                                     "pow.Tensor_Scalar",
                                     "pow.Tensor_Tensor",
                                     "pow.Scalar",
                                     "softplus",
                                     "layer_norm",
                                     "native_layer_norm",
                                     "group_norm",
                                     "frobenius_norm.dim",
                                     "nuclear_norm",
                                     "nuclear_norm.dim",
                                     "cosine_similarity",
                                     "poisson_nll_loss",
                                     "cosine_embedding_loss",
                                     "nll_loss",
                                     "nll_loss2d",
                                     "hinge_embedding_loss",
                                     "kl_div",
                                     "l1_loss",
                                     "smooth_l1_loss",
                                     "huber_loss",
                                     "mse_loss",
                                     "margin_ranking_loss",
                                     "multilabel_margin_loss",
                                     "soft_margin_loss",
                                     "triplet_margin_loss",
                                     "multi_margin_loss",
                                     "binary_cross_entropy_with_logits",
                                     "dist",
                                     "pdist",
                                     "cdist",
                                     "renorm",
                                     "logsumexp",
                                     "upsample_nearest1d",
                                     "_upsample_nearest_exact1d",
                                     "upsample_nearest2d",
                                     "_upsample_nearest_exact2d",
                                     "upsample_nearest3d",
                                     "_upsample_nearest_exact3d",
                                     "upsample_linear1d",
                                     "upsample_bilinear2d",
                                     "_upsample_bilinear2d_aa",
                                     "upsample_trilinear3d",
                                     "upsample_bicubic2d",
                                     "_upsample_bicubic2d_aa"};

const std::set<std::string> kFp32SetDtype = {"prod",
                                             "prod.dim_int",
                                             "softmax.int",
                                             "log_softmax.int",
                                             "cumprod",
                                             "cumsum",
                                             "linalg_vector_norm",
                                             "linalg_matrix_norm",
                                             "linalg_matrix_norm.str_ord",
                                             "sum",
                                             "sum.dim_IntList"};

const std::set<std::string> kPromote = {"addcdiv",   "addcmul",   "atan2",      "bilinear",
                                        "cross",     "dot",       "vdot",       "grid_sampler",
                                        "index_put", "tensordot", "scatter_add"};

std::string_view word(Autocast rule) {
  constexpr std::string_view kWords[] = {"none",          "lower precision", "fp32",
                                         "fp32 as dtype", "promote",         "banned"};
  return kWords[static_cast<int>(rule)];
}

Autocast rule_of(const std::string& name) {
  if (kLowerPrecision.contains(name)) return Autocast::lower_precision;
  if (kFp32.contains(name)) return Autocast::fp32;
  if (kFp32SetDtype.contains(name)) return Autocast::fp32_set_dtype;
  if (kPromote.contains(name)) return Autocast::promote;
  return name == "binary_cross_entropy" ? Autocast::banned : Autocast::none;
}

TEST(AutocastRules, AreThoseOfTheFramework) {
  for (const auto& op : standard_registry().operators()) {
    if (op->in_place || !op->name.starts_with("aten::")) continue;
    if (op->record.facts.cast_by) continue;  // cat, stack, norm, … do it themselves
    const std::string name = op->name.substr(std::string_view("aten::").size());
    EXPECT_EQ(word(op->record.facts.autocast), word(rule_of(name))) << name;
  }
}

}  // namespace
}  // namespace metaprof
