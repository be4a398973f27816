#include "meta/ops/rules/iterator.h"

#include <fmt/format.h>

#include "core/error.h"

namespace metaprof {
namespace {

// c10: at::native::ResultTypeState. Undefined is "no such operand yet".
struct PromotionState {
  std::optional<DType> dimensioned, scalar, number;

  static void merge(std::optional<DType>& into, DType dtype) { into = into ? promote(*into, dtype) : dtype; }
  void add_number(DType dtype) {
    if (is_complex(dtype)) dtype = DType::c64;
    if (is_floating(dtype)) dtype = kDefaultDType;
    merge(number, dtype);
  }
  void add(const Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor->wrapped_number) return add_number(tensor.dtype());
    merge(tensor.dim() > 0 ? dimensioned : scalar, tensor.dtype());
  }
  void add(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::tensor: return add(value.tensor());
      case Value::Kind::real: return add_number(DType::f64);
      case Value::Kind::integer: return add_number(DType::i64);
      case Value::Kind::boolean: return add_number(DType::b8);
      case Value::Kind::complex: return add_number(DType::c128);
      default: return;
    }
  }
  static std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher || !lower) return higher ? higher : lower;
    if (is_complex(*higher)) return higher;
    if (is_floating(*higher)) return is_complex(*lower) ? complex_type(*higher) : *higher;
    if (*higher == DType::b8 || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
    return higher;
  }
  DType result() const { return combine(dimensioned, combine(scalar, number)).value_or(kDefaultDType); }
};

// Strides of an operand seen under the broadcast sizes: 0 where it is repeated.
Sizes broadcast_strides(const Tensor& tensor, SizesView sizes) {
  Sizes strides(sizes.size(), 0);
  const size_t shift = sizes.size() - tensor.sizes().size();
  for (size_t d = 0; d < tensor.sizes().size(); ++d)
    if (tensor.sizes()[d] != 1 || sizes[d + shift] == 1) strides[d + shift] = tensor.strides()[d];
  return strides;
}

bool same_geometry(std::span<const Tensor* const> operands, SizesView sizes) {
  const Tensor* first = nullptr;
  for (const Tensor* operand : operands) {
    if (!operand->defined()) continue;
    if (operand->sizes().size() != sizes.size()) return false;
    if (!std::equal(sizes.begin(), sizes.end(), operand->sizes().begin())) return false;
    if (first && first->strides() != operand->strides()) return false;
    if (!first) first = operand;
  }
  return first && (*first)->dense;
}

bool all_contiguous(std::span<const Tensor* const> operands, SizesView sizes) {
  for (const Tensor* operand : operands) {
    if (!operand->defined()) continue;
    if (!(*operand)->contiguous || operand->sizes().size() != sizes.size()) return false;
    if (!std::equal(sizes.begin(), sizes.end(), operand->sizes().begin())) return false;
  }
  return true;
}

}  // namespace

DType result_type(std::initializer_list<const Tensor*> operands) {
  PromotionState state;
  for (const Tensor* operand : operands) state.add(*operand);
  return state.result();
}

DType result_type(std::span<const Tensor> operands) {
  PromotionState state;
  for (const Tensor& operand : operands) state.add(operand);
  return state.result();
}

DType result_type(std::span<const Tensor* const> operands) {
  PromotionState state;
  for (const Tensor* operand : operands) state.add(*operand);
  return state.result();
}

DType result_type(std::span<const Value> operands) {
  PromotionState state;
  for (const Value& operand : operands) state.add(operand);
  return state.result();
}

DType result_type(const Tensor& tensor, const Value& number) {
  PromotionState state;
  state.add(tensor);
  state.add(number);
  return state.result();
}

Sizes broadcast_all(const Call& call, std::span<const Tensor* const> operands) {
  Sizes sizes;
  try {
    for (const Tensor* operand : operands)
      if (operand->defined()) sizes = broadcast(sizes, operand->sizes());
  } catch (const Error& error) {
    call.error(error.what());
  }
  return sizes;
}

Sizes result_strides(SizesView sizes, std::span<const Tensor* const> operands) {
  if (all_contiguous(operands, sizes)) return contiguous_strides(sizes);
  if (same_geometry(operands, sizes))
    for (const Tensor* operand : operands)
      if (operand->defined()) return operand->strides();
  std::vector<Sizes> strides;
  for (const Tensor* operand : operands)
    if (operand->defined()) strides.push_back(broadcast_strides(*operand, sizes));
  // TensorIteratorBase::reorder_dimensions: insertion sort; the first operand that tells two dimensions apart
  // decides.
  const int dims = static_cast<int>(sizes.size());
  SmallVector<int, 6> order;
  for (int d = dims - 1; d >= 0; --d) order.push_back(d);
  auto should_swap = [&](int a, int b) {
    for (const Sizes& of_operand : strides) {
      const int64_t x = of_operand[size_t(a)], y = of_operand[size_t(b)];
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (sizes[size_t(a)] > sizes[size_t(b)]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < dims; ++i) {
    int at = i;
    for (int j = i - 1; j >= 0; --j) {
      const int verdict = should_swap(order[size_t(j)], order[size_t(at)]);
      if (verdict > 0) {
        std::swap(order[size_t(j)], order[size_t(at)]);
        at = j;
      } else if (verdict < 0) {
        break;
      }
    }
  }
  Sizes out(sizes.size());
  bool row_major = true;
  for (int d = 0; d < dims; ++d) row_major &= order[size_t(d)] == dims - 1 - d;
  if (row_major) return contiguous_strides(sizes);
  int64_t step = 1;
  for (int d : order) {
    out[size_t(d)] = step;
    step *= sizes[size_t(d)];
  }
  return out;
}

Tensor& elementwise(Call& call, std::span<const Tensor* const> operands, DType dtype) {
  // Most calls have operands of one geometry. Contiguous ones may have odd strides where the size is 1: the
  // result has not (TensorIteratorBase::fast_set_up).
  const Tensor* first = operands[0];
  if (first->defined() && same_geometry(operands, first->sizes())) {
    const bool row_major = (*first)->contiguous;
    return call.output(first->sizes(), row_major ? contiguous_strides(first->sizes()) : first->strides(),
                       dtype, call.device());
  }
  const Sizes sizes = broadcast_all(call, operands);
  return call.output(sizes, result_strides(sizes, operands), dtype);
}

Tensor& elementwise(Call& call, std::initializer_list<const Tensor*> operands, DType dtype) {
  return elementwise(call, std::span(operands.begin(), operands.size()), dtype);
}

FlopCount input_flops(const Call& call) { return {.own = call.arguments[0].tensor().numel()}; }

}  // namespace metaprof
