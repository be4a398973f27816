// All tuples and all subsets of elements.

#include <fmt/format.h>

#include "meta/op/versions.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/views/family.h"

namespace metaprof {
namespace {

void cartesian_product_body(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  for (const Tensor& tensor : tensors)
    if (tensor.dim() != 1) c.error(fmt::format("expects vectors, got {}", describe(tensor)));
  if (tensors.size() == 1) return c.result(tensors[0]);
  const Results grids = call_all<"meshgrid.indexing">(c.session, tensors, "ij");
  Value::Tensors flat;
  for (const Tensor& grid : grids.tensors()) flat.push_back(call<"flatten.using_ints">(c.session, grid));
  c.result(call<"stack">(c.session, flat, 1));
}

// A mask that keeps those whose places rise (aten/src/ATen/native/Itertools.cpp).
Tensor rising_places(Call& c, int64_t n, int64_t r) {
  Session& s = c.session;
  const Device device = c.tensor("self").device();
  const Tensor range = call<"arange">(s, n, DType::i64, Value(), device);
  const Results places = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), range), "ij");
  const Tensor mask = call<"full">(s, Sizes(size_t(r), n), true, DType::b8, Value(), device);
  for (size_t i = 0; i + 1 < size_t(r); ++i) {
    const Tensor &before = places.tensors()[i], &behind = places.tensors()[i + 1];
    const Tensor rises = c.boolean("with_replacement") ? le(before, behind) : lt(before, behind);
    call<"logical_and_">(s, mask, rises);
  }
  return mask;
}

void combinations_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const int64_t r = c.integer("r");
  if (r == 0) return c.result(call<"empty.memory_format">(s, Sizes{0}, self.dtype(), Value(), self.device()));
  const int64_t n = self.numel();
  const Results grids = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), self), "ij");
  const Tensor mask = rising_places(c, n, r);
  Value::Tensors chosen;
  for (const Tensor& grid : grids.tensors()) chosen.push_back(call<"masked_select">(s, grid, mask));
  c.result(call<"stack">(s, chosen, 1));
}

int64_t number_of_combinations(int64_t n, int64_t r) {
  int64_t count = 1;
  for (int64_t i = 0; i < r; ++i) count = multiply(count, n - i) / (i + 1);
  return count;
}

// From 2.15 on their number is computed: the places of the mask's true elements, then the elements at these places
// (recorded: `opinfo/combinations`).
void counted_combinations_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const int64_t r = c.integer("r"), n = self.numel();
  const bool again = c.boolean("with_replacement");
  if (r == 0) return c.result(call<"empty.memory_format">(s, Sizes{0}, self.dtype(), Value(), self.device()));
  Tensor places;
  {
    const Tensor mask = rising_places(c, n, r);
    const int64_t count = std::max<int64_t>(0, number_of_combinations(again ? n + r - 1 : n, r));
    places = call<"nonzero_static">(s, mask, count);
  }
  c.result(contiguous(call<"index.Tensor">(s, self, Value::Tensors{places})));
}

// A grid of r dimensions is made; the framework's iterators take up to 64 (aten/src/ATen/TensorIterator.h).
constexpr Op combinations(void (*body)(Call&), Facts facts) {
  facts.takes = "self.dim == 1, r in 0 to 64";
  return composite_of("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
                      "all subsets of r elements", body, {"f32[4]"}, facts);
}

constexpr Op kTuples[] = {
    composite_of("cartesian_prod(Tensor[] tensors) -> Tensor", "all tuples of elements",
                 cartesian_product_body, {"(f32[2] f32[3])"}),
    before({2, 15}, combinations(combinations_body, {.cudagraph_unsafe = true, .reads_data = true})),
    since({2, 15}, combinations(counted_combinations_body, {}))};

}  // namespace

Tables tuple_operators() {
  static constexpr Records tables[] = {kTuples};
  return tables;
}

}  // namespace metaprof
