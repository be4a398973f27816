// Which implementation of attention runs (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp,
// sdp_utils_cpp.cpp and sdp_utils_cpp.h, PyTorch 2.11).

#include <algorithm>
#include <cmath>

#include "meta/ops/attention/attention.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// Why an implementation does not take a call; null: it does.
using Refusal = const char*;

constexpr Refusal kOff = "it is switched off", kCapability = "it needs another compute capability",
                  kDimensions = "query, key and value do not have four dimensions each",
                  kRows = "there are no queries or no keys",
                  kPacked = "a tensor's last dimension is not contiguous";

Refusal first_of(std::initializer_list<Refusal> refusals) {
  for (const Refusal refusal : refusals)
    if (refusal) return refusal;
  return nullptr;
}

// Compute capability, 90 = 9.0.
bool is_between(const Session& s, int least, int most) {
  return s.ask([=](const Platform& platform) {
    return platform.hardware.sm >= least && platform.hardware.sm <= most;
  });
}
bool is_at_least(const Session& s, int capability) {
  return s.ask([=](const Platform& platform) { return platform.hardware.sm >= capability; });
}

bool is_any(DType dtype, std::initializer_list<DType> of) {
  return std::find(of.begin(), of.end(), dtype) != of.end();
}

bool has_four_dimensions(const AttentionCall& a) {
  return a.query.dim() == 4 && a.key.dim() == 4 && a.value.dim() == 4;
}

Refusal refuses_rows(const AttentionCall& a) {
  return a.query.size(-2) != 0 && a.key.size(-2) != 0 ? nullptr : kRows;
}

// Heads: equal numbers, or keys' (and values') numbers that divide the queries'.
Refusal refuses_heads(const AttentionCall& a, bool takes_groups, bool keys_like_values) {
  constexpr Refusal kUnequal = "query, key and value have different batches or numbers of heads";
  if (a.query.size(0) != a.key.size(0) || a.query.size(0) != a.value.size(0)) return kUnequal;
  const int64_t q = a.query.size(1), k = a.key.size(1), v = a.value.size(1);
  if (!a.grouped_heads || !takes_groups) {
    if (q == k && q == v) return nullptr;
    return a.grouped_heads ? "keys have fewer heads than queries (enable_gqa)" : kUnequal;
  }
  if (keys_like_values && k != v) return kUnequal;
  const bool divide = k != 0 && v != 0 && q % k == 0 && (keys_like_values || q % v == 0);
  return divide ? nullptr : "the numbers of heads of keys do not divide that of queries";
}

Refusal refuses_strides(const AttentionCall& a, bool ignore_size_one) {
  auto last = [](const Tensor& t) { return t.strides().back(); };
  bool packed = last(a.query) == 1 && last(a.key) == 1 && last(a.value) == 1;
  if (ignore_size_one) packed = packed || a.query.size(-1) == 1;
  const bool mask_fits = a.query.device().is_cpu() || !a.mask.defined() || last(a.mask) == 1;
  return packed && mask_fits ? nullptr : kPacked;
}

// A mask without gradient of [queries|1, keys|1] or [batch|1, heads|1, queries|1, keys|1].
Refusal refuses_mask(const AttentionCall& a) {
  if (!a.mask.defined()) return nullptr;
  if (a.mask.requires_grad()) return "the mask requires a gradient";
  constexpr Refusal kShape = "the mask's sizes are not those of queries and keys";
  auto fits = [&](int64_t dim, int64_t size) { return a.mask.size(dim) == size || a.mask.size(dim) == 1; };
  if (a.mask.dim() < 2 || !fits(-2, a.query.size(2)) || !fits(-1, a.key.size(2))) return kShape;
  if (a.mask.dim() == 2) return nullptr;
  return a.mask.dim() == 4 && fits(0, a.query.size(0)) && fits(1, a.query.size(1)) ? nullptr : kShape;
}

Refusal refuses_dtype(const Session& s, DType dtype) {
  if (dtype == DType::f16 || (dtype == DType::bf16 && is_at_least(s, 80))) return nullptr;
  return dtype == DType::bf16 ? "bf16 needs compute capability 8.0" : "it takes fp16 and bf16 alone";
}

// Heads wider than 128 have a backward in two forms (recorded: `shapes/sdpa/bf16/2-4-128-128-192` and others, 2.15).
bool trains_on_cudnn(int64_t head, int64_t value_head) {
  if (head <= 128 && value_head <= 128) return true;
  return (head == 192 && value_head == 128) || (head == 256 && value_head == 256);
}

Refusal refuses_on_cudnn(const Session& s, const AttentionCall& a) {
  const Libraries& libraries = s.platform.libraries;
  if (a.dropout > 0 && !libraries.attention_of_cudnn_has_dropout()) return "this cuDNN has no dropout";
  const bool sixteenths = std::trunc(a.dropout * 16) == a.dropout * 16;
  if (!sixteenths && !s.platform.framework.cudnn_attention_takes_any_dropout)
    return "its dropout is a multiple of 1/16";
  const int64_t head = a.query.size(3), value_head = a.value.size(3);
  const bool is_wide = head > 128 || value_head > 128;
  const int64_t largest =
      is_wide && libraries.attention_of_cudnn_is_wide() && is_between(s, 90, 90) ? 256 : 128;
  if (head > largest || value_head > largest)
    return largest == 128 ? "heads are wider than 128" : "heads are wider than 256";
  if (head % 8 != 0 || value_head % 8 != 0) return "the size of a head is no multiple of 8";
  if (a.wide_heads_train_in_pairs && a.requires_grad() && !trains_on_cudnn(head, value_head))
    return "heads of these sizes have no backward";
  if (a.key.size(2) == 1) return "there is one key";
  return a.query.size(2) == 1 && a.dropout > 0 ? "there is one query, and dropout" : nullptr;
}

Refusal cudnn_refuses(const Session& s, const AttentionCall& a) {
  if (!s.modes.cudnn_attention) return kOff;
  if (s.modes.deterministic) return "deterministic algorithms are asked for";
  if (!is_between(s, 80, 121)) return kCapability;
  if (!has_four_dimensions(a)) return kDimensions;
  return first_of({refuses_dtype(s, a.query.dtype()), refuses_mask(a), refuses_rows(a),
                   refuses_strides(a, true), refuses_heads(a, true, false), refuses_on_cudnn(s, a)});
}

// Compute capabilities whose blocks have less than 160 KiB of shared memory.
bool has_small_shared_memory(const Session& s) {
  return s.ask([](const Platform& platform) {
    const int sm = platform.hardware.sm;
    return sm == 86 || sm == 89 || sm == 120 || sm == 121;
  });
}

Refusal flash_refuses(const Session& s, const AttentionCall& a) {
  if (!s.modes.flash_attention) return kOff;
  if (!is_between(s, 80, 121)) return kCapability;
  if (!has_four_dimensions(a)) return kDimensions;
  if (const Refusal refusal = refuses_dtype(s, a.query.dtype())) return refusal;
  if (a.mask.defined()) return "it takes no mask";
  const int64_t head = a.query.size(3);
  if (head != a.key.size(3) || head != a.value.size(3))
    return "query, key and value have heads of different sizes";
  if (head > 256) return "heads are wider than 256";
  // Backward kernels of large heads do not fit on these.
  if (a.requires_grad() && head > 192 && (head <= 224 || a.dropout > 0) && has_small_shared_memory(s))
    return "the backward of heads wider than 192 needs more shared memory";
  if (a.causal && a.query.size(-2) != a.key.size(-2)) return "it is causal with other queries than keys";
  return first_of({refuses_heads(a, true, true), refuses_rows(a), refuses_strides(a, true)});
}

// Elements that one access of the kernels' matrix products wants aligned.
int64_t product_alignment(const Session& s, DType dtype) {
  return s.ask([half = is_reduced_floating(dtype)](const Platform& platform) {
    const int sm = platform.hardware.sm;
    const bool tensor_cores = sm >= 80 || (sm >= 70 && half);
    const int64_t elements = sm >= 80 ? 4 : 1;
    return tensor_cores ? std::max<int64_t>(elements, 128 / (half ? 16 : 32)) : elements;
  });
}

Refusal efficient_refuses(const Session& s, const AttentionCall& a) {
  if (!s.modes.efficient_attention) return kOff;
  if (!is_between(s, 50, 121)) return kCapability;
  if (!has_four_dimensions(a)) return kDimensions;
  const int64_t head = a.query.size(3), value_head = a.value.size(3);
  const int64_t alignment = product_alignment(s, a.query.dtype());
  if (head != a.key.size(3)) return "query and key have heads of different sizes";
  if (head == 0 || value_head == 0) return "heads are empty";
  if (head % alignment != 0 || value_head % alignment != 0)
    return "the size of a head is no multiple of what its kernels align";
  const Refusal refusal =
      first_of({refuses_rows(a), refuses_strides(a, false),
                refuses_heads(a, s.platform.framework.efficient_attention_takes_groups, true)});
  if (refusal) return refusal;
  const DType dtype = a.query.dtype();
  if (dtype == DType::bf16) return refuses_dtype(s, dtype);
  return dtype == DType::f32 || dtype == DType::f16 ? nullptr : "it takes fp32, fp16 and bf16 alone";
}

Refusal cpu_flash_refuses(const Session& s, const AttentionCall& a) {
  if (!s.modes.flash_attention) return kOff;
  if (!has_four_dimensions(a)) return kDimensions;
  if (a.dropout > 0) return "it has no dropout on the host";
  if (a.query.size(3) != a.key.size(3) || a.query.size(3) != a.value.size(3))
    return "query, key and value have heads of different sizes";
  if (!is_any(a.query.dtype(), {DType::f64, DType::f32, DType::bf16, DType::f16}))
    return "it takes other dtypes";
  return first_of(
      {refuses_mask(a), refuses_heads(a, true, true), refuses_rows(a), refuses_strides(a, false)});
}

}  // namespace

AttentionChoice choose_attention(const Session& s, const AttentionCall& a) {
  AttentionChoice choice;
  const auto takes = [&](AttentionBackend backend, Refusal refusal) {
    if (refusal) choice.refused.push_back({backend, refusal});
    choice.taken = backend;
    return refusal == nullptr;
  };
  if (a.query.device().is_cpu()) {
    if (!takes(AttentionBackend::flash_for_cpu, cpu_flash_refuses(s, a)))
      choice.taken = AttentionBackend::math;
    return choice;
  }
  // cuDNN comes first on Hopper and Blackwell; last otherwise, behind what takes everything. Where it refuses, what runs
  // does not depend on that: no question of the run's.
  if (s.platform.libraries.attention_of_cudnn_is_preferred()) {
    const Refusal refusal = cudnn_refuses(s, a);
    const int sm = s.platform.hardware.sm;
    const bool comes_first = refusal ? sm >= 90 && sm <= 109 : is_between(s, 90, 109);
    if (comes_first && takes(AttentionBackend::cudnn, refusal)) return choice;
  }
  if (takes(AttentionBackend::flash, flash_refuses(s, a))) return choice;
  if (takes(AttentionBackend::efficient, efficient_refuses(s, a))) return choice;
  if (!s.modes.math_attention && !cudnn_refuses(s, a))
    choice.taken = AttentionBackend::cudnn;
  else
    choice.taken = AttentionBackend::math;
  return choice;
}

std::string_view to_string(AttentionBackend backend) {
  switch (backend) {
    case AttentionBackend::math: return "attention::math";
    case AttentionBackend::flash: return "attention::flash";
    case AttentionBackend::efficient: return "attention::memory-efficient";
    case AttentionBackend::cudnn: return "attention::cuDNN";
    case AttentionBackend::flash_for_cpu: return "attention::flash on the host";
  }
  return "";
}

}  // namespace metaprof
