// All tuples and all subsets of elements.

#include <fmt/format.h>

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

// A mask keeps those whose places rise (aten/src/ATen/native/Itertools.cpp).
void combinations_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const int64_t r = c.integer("r");
  if (self.dim() != 1) c.error(fmt::format("expects a vector, got {}", describe(self)));
  if (r < 0) c.error(fmt::format("expects a number of elements that is not negative, got {}", r));
  if (r == 0) return c.result(call<"empty.memory_format">(s, Sizes{0}, self.dtype(), Value(), self.device()));
  const int64_t n = self.numel();
  const Results grids = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), self), "ij");
  Tensor mask;
  {
    const Tensor range = call<"arange">(s, n, DType::i64, Value(), self.device());
    const Results places = call_all<"meshgrid.indexing">(s, Value::Tensors(size_t(r), range), "ij");
    mask = call<"full">(s, Sizes(size_t(r), n), true, DType::b8, Value(), self.device());
    for (size_t i = 0; i + 1 < size_t(r); ++i) {
      const Tensor &before = places.tensors()[i], &behind = places.tensors()[i + 1];
      const Tensor rises = c.boolean("with_replacement") ? le(before, behind) : lt(before, behind);
      call<"logical_and_">(s, mask, rises);
    }
  }
  Value::Tensors chosen;
  for (const Tensor& grid : grids.tensors()) chosen.push_back(call<"masked_select">(s, grid, mask));
  c.result(call<"stack">(s, chosen, 1));
}

constexpr Op kTuples[] = {
    composite_of("cartesian_prod(Tensor[] tensors) -> Tensor", "all tuples of elements",
                 cartesian_product_body, {"(f32[2] f32[3])"}),
    composite_of("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
                 "all subsets of r elements", combinations_body, {"f32[4]"},
                 {.cudagraph_unsafe = true, .reads_data = true})};

}  // namespace

Tables tuple_operators() {
  static constexpr Records tables[] = {kTuples};
  return tables;
}

}  // namespace metaprof
