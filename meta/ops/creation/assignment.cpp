// Filling, copying and casting: what a tensor is given.

#include <fmt/format.h>

#include "meta/ops/creation/family.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// --- fill

void like_self_meta(Call& c) { c.output_like(c.tensor("self")); }

constexpr Derivative of_self = {{"self"}, {}, zero_gradient};
constexpr Derivative of_value = {{"value"}, {}, [](Backward& b) { return sum(b.grad()); }};
constexpr Op kFill[] = {{.schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor",
                         .summary = "a number everywhere",
                         .meta = like_self_meta,
                         .derivatives = {of_self},
                         .flops = free_of_flops,
                         .examples = {"f32[2,3] 1"}},
                        {.schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor",
                         .summary = "a value everywhere",
                         .meta = like_self_meta,
                         .derivatives = {of_self, of_value},
                         .flops = free_of_flops,
                         .examples = {"f32[2,3] f32[]"},
                         .facts = {.node = "FillBackward1"}},
                        {.schema = "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
                         .summary = "self := value",
                         .meta = self_meta,
                         .derivatives = {of_self, of_value},
                         .flops = free_of_flops,
                         .examples = {"f32[2,3] f32[]"},
                         .facts = {.node = "FillBackward3"}}};

// --- copies

// The functional form of copy_: self's geometry and dtype, src's elements.
void copy_into_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &src = c.tensor("src");
  const Tensor* operands[] = {&self, &src};
  if (broadcast_all(c, operands) != self.sizes()) c.error("the source does not broadcast to the target");
  c.output(self.sizes(), self.strides(), self.dtype());
}

// Bytes seen as another dtype; the last dimension grows or shrinks.
void view_dtype_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const DType dtype = c.dtype("dtype", self.dtype());
  const int64_t from = element_size(self.dtype()), to = element_size(dtype);
  Sizes sizes = self.sizes(), strides = self.strides();
  int64_t offset = self->offset;
  if (from != to) {
    if (sizes.empty() || strides.back() != 1)
      c.error(fmt::format("{} cannot be seen as {}: the last dimension must be contiguous", describe(self),
                          long_name(dtype)));
    if (from < to && (sizes.back() * from % to != 0 || offset * from % to != 0))
      c.error(fmt::format("{} cannot be seen as {}: the last dimension does not divide", describe(self),
                          long_name(dtype)));
    sizes.back() = sizes.back() * from / to;
    for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] = strides[d] * from / to;
    offset = offset * from / to;
  }
  c.view(self, sizes, strides, offset)->dtype = dtype;
}

void detach_in_place(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self->base) c.error("a view cannot be detached in place: use detach");
  self->grad_fn.reset();
  self->output_nr = 0;
  self->requires_grad = false;
  c.result(self);
}

constexpr Op kAssignments[] = {
    {.schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     .summary = "src in self's geometry and dtype",
     .meta = copy_into_meta,
     .derivatives = {{{"src"}, {}, [](Backward& b) { return to(b.grad(), b.dtype("src")); }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] f32[3]"}},
    {.schema = "lift_fresh_copy(Tensor self) -> Tensor",
     .summary = "a constant of the program",
     .meta = [](Call& c) { c.output(c.tensor("self").sizes(), c.tensor("self").dtype()); },
     .derivatives = {{{"self"}, {}, gradient_itself}},
     .flops = free_of_flops,
     .examples = {"f32[2,3]"},
     .facts = {.node = "LiftFreshBackward0_copy"}},
    {.schema = "detach_(Tensor(a!) self) -> Tensor(a!)",
     .summary = "self without history",
     .meta = detach_in_place,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2]"},
     .facts = {.writes_no_data = true}},
    {.schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
     .summary = "the same bytes as another dtype",
     .meta = view_dtype_meta,
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,4] 3", "f32[2,4] 5"},
     .facts = {.view = true}},
    composite_of("type_as(Tensor self, Tensor other) -> Tensor", "self in other's dtype, on other's device",
                 [](Call& c) {
                   const Tensor& other = c.tensor("other");
                   c.result(call<"to.dtype_layout">(c.session, c.tensor("self"), other.dtype(), Value(),
                                                    other.device()));
                 },
                 {"f32[2] f16[3]"}),
    composite_of("chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
                 "in complex half precision",
                 [](Call& c) {
                   c.result(call<"to.dtype">(c.session, c.tensor("self"), DType::c32, false, false,
                                             c["memory_format"]));
                 },
                 {"f32[2]"})};

}  // namespace

Tables assignment_operators() {
  static constexpr Records tables[] = {kFill, kAssignments};
  return tables;
}

}  // namespace metaprof
