// Several tensors as one.

#include <fmt/format.h>

#include "meta/autograd/backward.h"
#include "meta/ops/all.h"
#include "meta/ops/functions.h"
#include "meta/ops/iterator.h"

namespace metaprof {
namespace {

// An old habit of the framework: a 1-D tensor without elements fits everything.
bool is_skipped(SizesView sizes) { return sizes.size() == 1 && sizes[0] == 0; }

void cat_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  if (tensors.empty()) c.error("expects at least one tensor");
  const Tensor* first = &tensors[0];
  for (const Tensor& tensor : tensors)
    if (!is_skipped(tensor.sizes())) {
      first = &tensor;
      break;
    }
  Sizes sizes = first->sizes();
  const auto dim = size_t(wrap_dim(c.integer("dim"), first->dim()));
  int64_t along = 0;
  bool channels_last = true;
  for (const Tensor& tensor : tensors) {
    channels_last &= suggests_channels_last(tensor.sizes(), tensor.strides());
    if (is_skipped(tensor.sizes())) continue;
    Sizes other = tensor.sizes();
    if (other.size() == sizes.size()) other[dim] = sizes[dim];
    if (other != sizes)
      c.error(fmt::format("sizes must agree except in dimension {}; got {} and {}", dim, describe(*first),
                          describe(tensor)));
    along += tensor.sizes()[dim];
  }
  sizes[dim] = along;
  const MemoryFormat format = !channels_last      ? MemoryFormat::contiguous
                              : sizes.size() == 4 ? MemoryFormat::channels_last
                                                  : MemoryFormat::channels_last_3d;
  c.output(sizes, strides_in(format, sizes), result_type(std::span<const Tensor>(tensors)));
}

// Every tensor's part of the gradient: views, no copies.
Gradients cat_backward(Backward& b) {
  const auto& shapes = b.shapes("tensors");
  Gradients gradients;
  int64_t at = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (is_skipped(shapes[i]->sizes)) {
      gradients.push_back(call<"zeros">(b.session, Sizes{0}, b.grad().dtype(), Value(), b.grad().device()));
      continue;
    }
    const int64_t dim = wrap_dim(b.integer("dim"), int64_t(shapes[i]->sizes.size()));
    const int64_t size = shapes[i]->sizes[size_t(dim)];
    gradients.push_back(b.wants("tensors", i)
                            ? Tensor(call<"slice.Tensor">(b.session, b.grad(), dim, at, at + size))
                            : Tensor());
    at += size;
  }
  return gradients;
}

// Runs as cat of unsqueezed views below autograd, with the gradient's slices as gradients.
void stack_meta(Call& c) {
  const Value::Tensors& tensors = c.tensors("tensors");
  if (tensors.empty()) c.error("expects at least one tensor");
  for (const Tensor& tensor : tensors)
    if (tensor.sizes() != tensors[0].sizes())
      c.error(fmt::format("expects tensors of equal sizes; got {} and {}", describe(tensors[0]),
                          describe(tensor)));
  Sizes sizes = tensors[0].sizes();
  sizes.insert(size_t(wrap_dim(c.integer("dim"), tensors[0].dim() + 1)), int64_t(tensors.size()));
  c.output(sizes, result_type(std::span<const Tensor>(tensors)));
}

Gradients stack_backward(Backward& b) {
  Gradients gradients;
  for (size_t i = 0; i < b.shapes("tensors").size(); ++i)
    gradients.push_back(b.wants("tensors", i)
                            ? Tensor(call<"select.int">(b.session, b.grad(), b.integer("dim"), i))
                            : Tensor());
  return gradients;
}

}  // namespace

void add_joining_operators(std::vector<Op>& ops) {
  ops.push_back({.schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
                 .summary = "tensors behind each other along a dimension",
                 .meta = cat_meta,
                 .kernels = {},
                 .derivatives = {{{"tensors"}, {}, cat_backward}},
                 .flops = free_of_flops,
                 .examples = {"(f32[2,3] f32[4,3])", "(f32[2,3] f32[2,1]) -1"},
                 .facts = {.autocast = Autocast::none}});
  ops.push_back({.schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
                 .summary = "tensors side by side along a new dimension",
                 .meta = stack_meta,
                 .kernels = {},
                 .derivatives = {{{"tensors"}, {}, stack_backward}},
                 .flops = free_of_flops,
                 .examples = {"(f32[2,3] f32[2,3]) 1"},
                 .facts = {.autocast = Autocast::none}});
}

}  // namespace metaprof
