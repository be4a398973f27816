// Which implementation of attention runs (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp,
// sdp_utils_cpp.cpp and sdp_utils_cpp.h, PyTorch 2.11).

#include <algorithm>
#include <cmath>

#include "meta/ops/attention/attention.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

bool is_any(DType dtype, std::initializer_list<DType> of) {
  return std::find(of.begin(), of.end(), dtype) != of.end();
}

bool has_four_dimensions(const AttentionCall& a) {
  return a.query.dim() == 4 && a.key.dim() == 4 && a.value.dim() == 4;
}

bool has_rows(const AttentionCall& a) { return a.query.size(-2) != 0 && a.key.size(-2) != 0; }

// Heads: equal numbers, or keys' (and values') numbers that divide the queries'.
bool heads_fit(const AttentionCall& a, bool takes_groups, bool keys_like_values) {
  if (a.query.size(0) != a.key.size(0) || a.query.size(0) != a.value.size(0)) return false;
  const int64_t q = a.query.size(1), k = a.key.size(1), v = a.value.size(1);
  if (!a.grouped_heads || !takes_groups) return q == k && q == v;
  if (keys_like_values && k != v) return false;
  return k != 0 && v != 0 && q % k == 0 && (keys_like_values || q % v == 0);
}

bool rows_are_packed(const AttentionCall& a, bool ignore_size_one) {
  auto last = [](const Tensor& t) { return t.strides().back(); };
  bool packed = last(a.query) == 1 && last(a.key) == 1 && last(a.value) == 1;
  if (ignore_size_one) packed = packed || a.query.size(-1) == 1;
  const bool mask_fits = a.query.device().is_cpu() || !a.mask.defined() || last(a.mask) == 1;
  return packed && mask_fits;
}

// A mask without gradient of [queries|1, keys|1] or [batch|1, heads|1, queries|1, keys|1].
bool mask_fits(const AttentionCall& a) {
  if (!a.mask.defined()) return true;
  if (a.mask.requires_grad()) return false;
  auto fits = [&](int64_t dim, int64_t size) { return a.mask.size(dim) == size || a.mask.size(dim) == 1; };
  if (a.mask.dim() < 2 || !fits(-2, a.query.size(2)) || !fits(-1, a.key.size(2))) return false;
  if (a.mask.dim() == 2) return true;
  return a.mask.dim() == 4 && fits(0, a.query.size(0)) && fits(1, a.query.size(1));
}

bool is_half(const Session& s, DType dtype) {
  return dtype == DType::f16 || (dtype == DType::bf16 && s.platform.hardware.sm >= 80);
}

// Heads wider than 128 have a backward in two forms (recorded: `shapes/sdpa/bf16/2-4-128-128-192` and others, 2.15).
bool trains_on_cudnn(int64_t head, int64_t value_head) {
  if (head <= 128 && value_head <= 128) return true;
  return (head == 192 && value_head == 128) || (head == 256 && value_head == 256);
}

bool cudnn_takes(const Session& s, const AttentionCall& a) {
  const int sm = s.platform.hardware.sm;
  const Libraries& libraries = s.platform.libraries;
  if (!s.modes.cudnn_attention || s.modes.deterministic || sm < 80 || sm > 121) return false;
  if (a.dropout > 0 && !libraries.attention_of_cudnn_has_dropout()) return false;
  const bool sixteenths = std::trunc(a.dropout * 16) == a.dropout * 16;
  if (!sixteenths && !s.platform.framework.cudnn_attention_takes_any_dropout) return false;
  if (!has_four_dimensions(a) || !is_half(s, a.query.dtype()) || !mask_fits(a)) return false;
  if (!has_rows(a) || !rows_are_packed(a, true) || !heads_fit(a, true, false)) return false;
  const int64_t head = a.query.size(3), value_head = a.value.size(3);
  const int64_t largest = sm == 90 && libraries.attention_of_cudnn_is_wide() ? 256 : 128;
  if (head > largest || value_head > largest || head % 8 != 0 || value_head % 8 != 0) return false;
  if (a.wide_heads_train_in_pairs && a.requires_grad() && !trains_on_cudnn(head, value_head)) return false;
  return a.key.size(2) != 1 && !(a.query.size(2) == 1 && a.dropout > 0);
}

bool flash_takes(const Session& s, const AttentionCall& a) {
  const int sm = s.platform.hardware.sm;
  if (!s.modes.flash_attention || sm < 80 || sm > 121 || a.mask.defined()) return false;
  if (!has_four_dimensions(a) || !is_half(s, a.query.dtype())) return false;
  const int64_t head = a.query.size(3);
  if (head != a.key.size(3) || head != a.value.size(3) || head > 256) return false;
  // Backward kernels of large heads do not fit on these.
  const bool small_shared_memory = sm == 86 || sm == 89 || sm == 120 || sm == 121;
  if (small_shared_memory && a.requires_grad() && head > 192 && (head <= 224 || a.dropout > 0)) return false;
  if (a.causal && a.query.size(-2) != a.key.size(-2)) return false;
  return heads_fit(a, true, true) && has_rows(a) && rows_are_packed(a, true);
}

// Elements that one access of the kernels' matrix products wants aligned.
int64_t product_alignment(const Session& s, DType dtype) {
  const bool half = is_reduced_floating(dtype);
  const bool tensor_cores = s.platform.hardware.sm >= 80 || (s.platform.hardware.sm >= 70 && half);
  int64_t elements = s.platform.hardware.sm >= 80 ? 4 : 1;
  if (tensor_cores) elements = std::max<int64_t>(elements, 128 / (half ? 16 : 32));
  return elements;
}

bool efficient_takes(const Session& s, const AttentionCall& a) {
  if (!s.modes.efficient_attention || s.platform.hardware.sm < 50 || s.platform.hardware.sm > 121)
    return false;
  if (!has_four_dimensions(a)) return false;
  const int64_t head = a.query.size(3), value_head = a.value.size(3);
  const int64_t alignment = product_alignment(s, a.query.dtype());
  if (head != a.key.size(3) || head == 0 || value_head == 0) return false;
  if (head % alignment != 0 || value_head % alignment != 0) return false;
  if (!has_rows(a) || !rows_are_packed(a, false)) return false;
  if (!heads_fit(a, s.platform.framework.efficient_attention_takes_groups, true)) return false;
  const DType dtype = a.query.dtype();
  return dtype == DType::f32 || is_half(s, dtype);
}

bool cpu_flash_takes(const Session& s, const AttentionCall& a) {
  if (!s.modes.flash_attention || !has_four_dimensions(a) || a.dropout > 0 || !mask_fits(a)) return false;
  if (a.query.size(3) != a.key.size(3) || a.query.size(3) != a.value.size(3)) return false;
  if (!is_any(a.query.dtype(), {DType::f64, DType::f32, DType::bf16, DType::f16})) return false;
  return heads_fit(a, true, true) && has_rows(a) && rows_are_packed(a, false);
}

}  // namespace

AttentionBackend choose_attention(const Session& s, const AttentionCall& a) {
  if (a.query.device().is_cpu())
    return cpu_flash_takes(s, a) ? AttentionBackend::flash_for_cpu : AttentionBackend::math;
  // cuDNN comes first on Hopper and Blackwell; last otherwise, behind what takes everything.
  const int architecture = s.platform.hardware.sm / 10;
  const bool prefers_cudnn =
      s.platform.libraries.attention_of_cudnn_is_preferred() && (architecture == 9 || architecture == 10);
  if (prefers_cudnn && cudnn_takes(s, a)) return AttentionBackend::cudnn;
  if (flash_takes(s, a)) return AttentionBackend::flash;
  if (efficient_takes(s, a)) return AttentionBackend::efficient;
  if (!s.modes.math_attention && cudnn_takes(s, a)) return AttentionBackend::cudnn;
  return AttentionBackend::math;
}

}  // namespace metaprof
