#include "step/compiled/executor/matmul_batches.h"

#include <algorithm>

namespace metaprof::ir {
namespace {

bool have_one_shape(std::span<const metaprof::Value> values) {
  return std::ranges::all_of(values, [&](const metaprof::Value& value) {
    return value.tensor().sizes() == values[0].tensor().sizes();
  });
}

Tensor concatenated(Session& session, std::span<const metaprof::Value> values, int64_t dim) {
  metaprof::Value::Tensors tensors;
  for (const metaprof::Value& value : values) tensors.push_back(value.tensor());
  return call<"cat">(session, std::move(tensors), dim);
}

}  // namespace

metaprof::Value matmul_tree(Session& session, std::vector<metaprof::Value> sides) {
  const size_t count = sides.size() / 2;
  const std::span<const metaprof::Value> left = std::span(sides).first(count),
                                         right = std::span(sides).last(count);
  if (have_one_shape(left) && have_one_shape(right))
    return {call<"mm">(session, concatenated(session, left, 1), concatenated(session, right, 0))};
  Tensor sum = call<"mm">(session, left[0].tensor(), right[0].tensor());
  for (size_t i = 1; i < count; ++i)
    sum = call<"add.Tensor">(session, sum, call<"mm">(session, left[i].tensor(), right[i].tensor()));
  return {std::move(sum)};
}

std::vector<metaprof::Value> matmul_side(Session& session, std::vector<metaprof::Value> sides,
                                         bool shared_is_left) {
  const Tensor shared = sides[0].tensor();
  const std::span<const metaprof::Value> others = std::span(sides).subspan(1);
  std::vector<metaprof::Value> products;
  if (!have_one_shape(others)) {
    for (const metaprof::Value& other : others)
      products.emplace_back(shared_is_left ? call<"mm">(session, shared, other.tensor())
                                           : call<"mm">(session, other.tensor(), shared));
    return products;
  }
  const int64_t dim = shared_is_left ? 1 : 0, length = others[0].tensor().size(dim);
  const Tensor all = concatenated(session, others, dim);
  const Tensor product = shared_is_left ? call<"mm">(session, shared, all) : call<"mm">(session, all, shared);
  for (size_t i = 0; i < others.size(); ++i)
    products.emplace_back(call<"narrow">(session, product, dim, static_cast<int64_t>(i) * length, length));
  return products;
}

}  // namespace metaprof::ir
