#include "step/compiled/executor/matmul_batches.h"

#include <algorithm>

namespace metaprof::ir {
namespace {

bool have_one_shape(std::span<const metaprof::Value> values) {
  return std::ranges::all_of(values, [&](const metaprof::Value& value) {
    return value.tensor().sizes() == values[0].tensor().sizes();
  });
}

Tensor side_by_side(Session& session, std::span<const metaprof::Value> values, int64_t dim) {
  metaprof::Value::Tensors tensors;
  for (const metaprof::Value& value : values) tensors.push_back(value.tensor());
  return call<"cat">(session, std::move(tensors), dim);
}

bool is_transposed(const metaprof::Value& value) {
  const Tensor& tensor = value.tensor();
  return tensor.strides()[0] == 1 && tensor.strides()[1] == tensor.size(0);
}

// Transposed matrices are concatenated as what they are transposed from, which lies in one piece.
Tensor concatenated(Session& session, std::span<const metaprof::Value> values, int64_t dim) {
  if (!std::ranges::all_of(values, is_transposed)) return side_by_side(session, values, dim);
  std::vector<metaprof::Value> pieces;
  for (const metaprof::Value& value : values) pieces.emplace_back(call<"t">(session, value.tensor()));
  return call<"t">(session, side_by_side(session, pieces, 1 - dim));
}

// Sizes for which the framework has found one product to be faster (batch_mm.cpp, 2.11).
bool is_fast_sum(const Tensor& left, const Tensor& right) {
  const int64_t rows = left.size(0), common = left.size(1), columns = right.size(1);
  return common < 512 || (rows < 256 && columns < 256) || (rows > 256 && columns > 256);
}
bool is_fast_side(const Tensor& other) { return other.numel() <= int64_t{1024} * 2048; }

}  // namespace

metaprof::Value matmul_tree(Session& session, std::vector<metaprof::Value> sides) {
  const size_t count = sides.size() / 2;
  const std::span<const metaprof::Value> left = std::span(sides).first(count),
                                         right = std::span(sides).last(count);
  if (have_one_shape(left) && have_one_shape(right) && is_fast_sum(left[0].tensor(), right[0].tensor()))
    return {call<"mm">(session, concatenated(session, left, 1), concatenated(session, right, 0))};
  Tensor sum = call<"mm">(session, left[0].tensor(), right[0].tensor());
  for (size_t i = 1; i < count; ++i)
    call<"add_.Tensor">(session, sum, call<"mm">(session, left[i].tensor(), right[i].tensor()));
  return {std::move(sum)};
}

std::vector<metaprof::Value> matmul_side(Session& session, std::vector<metaprof::Value> sides,
                                         bool shared_is_left) {
  const Tensor shared = sides[0].tensor();
  const std::span<const metaprof::Value> others = std::span(sides).subspan(1);
  std::vector<metaprof::Value> products;
  if (!have_one_shape(others) || !is_fast_side(others[0].tensor())) {
    for (const metaprof::Value& other : others)
      products.emplace_back(shared_is_left ? call<"mm">(session, shared, other.tensor())
                                           : call<"mm">(session, other.tensor(), shared));
    return products;
  }
  const int64_t dim = shared_is_left ? 1 : 0, length = others[0].tensor().size(dim);
  const Tensor all = side_by_side(session, others, dim);
  const Tensor product = shared_is_left ? call<"mm">(session, shared, all) : call<"mm">(session, all, shared);
  for (size_t i = 0; i < others.size(); ++i)
    products.emplace_back(call<"narrow">(session, product, dim, static_cast<int64_t>(i) * length, length));
  return products;
}

}  // namespace metaprof::ir
