// Views as copies (view_copy …), and views in place (squeeze_ …), which change the geometry of a tensor.

#include <algorithm>
#include <cmath>

#include "meta/autograd/graph/views.h"
#include "meta/op/versions.h"
#include "meta/ops/views/family.h"
#include "meta/ops/views/takes.h"
#include "meta/ops/views/views.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// A contiguous copy of what the view would see (native: the view, then clone(contiguous)).
template <void (*geometry)(Call&)>
void copied(Call& c) {
  geometry(c);
  ResultList views = std::move(c.results);
  c.results.clear();
  const Value& first = views[0];
  if (first.is_tensor()) {
    c.output(first.tensor().sizes(), first.tensor().dtype());
    return;
  }
  Value::Tensors copies;
  for (const Tensor& view : first.tensors())
    copies.push_back(
        Tensor(new TensorImpl(view.sizes(), contiguous_strides(view.sizes()), view.dtype(), view.device())));
  c.result(Value(std::move(copies)));
}

constexpr Op copy_operator(std::string_view schema, std::string_view node, void (*meta)(Call&),
                           Formula backward, const Examples& examples) {
  return {.schema = schema,
          .summary = "a copy of what the view would see",
          .meta = meta,
          .derivatives = {{{"self"}, {}, backward}},
          .flops = free_of_flops,
          .examples = examples,
          .facts = {.node = node}};
}

constexpr Op kCopies[] = {
    copy_operator("view_copy(Tensor self, SymInt[] size) -> Tensor", "ViewBackward0_copy",
                  copied<view_geometry>, view_backward, {"f32[2,6] (3 4)"}),
    copy_operator("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor",
                  "ExpandBackward0_copy", copied<expand_geometry>, expand_backward, {"f32[3,1] (2 3 4)"}),
    copy_operator("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", "TransposeBackward0_copy",
                  copied<transpose_geometry>, transpose_backward, {"f32[2,3] 0 1"}),
    copy_operator("t_copy(Tensor self) -> Tensor", "TBackward0_copy", copied<t_geometry>, t_backward,
                  {"f32[2,3]"}),
    copy_operator("permute_copy(Tensor self, int[] dims) -> Tensor", "PermuteBackward0_copy",
                  copied<permute_geometry>, permute_backward, {"f32[2,3,4] (2 0 1)"}),
    copy_operator("unsqueeze_copy(Tensor self, int dim) -> Tensor", "UnsqueezeBackward0_copy",
                  copied<unsqueeze_geometry>, unsqueeze_backward, {"f32[2,3] 1"}),
    copy_operator("squeeze_copy(Tensor self) -> Tensor", "SqueezeBackward0_copy", copied<squeeze_geometry>,
                  squeeze_backward, {"f32[2,1,3]"}),
    copy_operator("squeeze_copy.dim(Tensor self, int dim) -> Tensor", "SqueezeBackward1_copy",
                  copied<squeeze_dim_geometry>, squeeze_dim_backward, {"f32[2,1,3] 1"}),
    copy_operator("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", "SqueezeBackward2_copy",
                  copied<squeeze_dims_geometry>, squeeze_dims_backward, {"f32[2,1,3] (1)"}),
    copy_operator("alias_copy(Tensor self) -> Tensor", "AliasBackward0_copy", copied<alias_geometry>,
                  same_gradient, {"f32[2]"}),
    copy_operator("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                  "step=1) -> Tensor",
                  "SliceBackward0_copy", copied<slice_geometry>, slice_gradient, {"f32[8,3] 0 1 7 2"}),
    copy_operator("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", "SelectBackward0_copy",
                  copied<select_geometry>, select_gradient, {"f32[2,3] 0 1"}),
    copy_operator("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
                  "DiagonalBackward0_copy", copied<diagonal_geometry>, diagonal_gradient, {"f32[3,4]"}),
    copy_operator("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
                  "UnfoldBackward0_copy", copied<unfold_geometry>, unfold_gradient, {"f32[5] 0 2 1"}),
    copy_operator(
        "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
        "AsStridedBackward0_copy", copied<as_strided_geometry>, as_strided_gradient,
        {"f32[2,6] (2 3) (6 2) 1"}),
    taking(kSplitTakes,
           copy_operator("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
                         "SplitBackward0_copy", copied<split_geometry>, split_gradient, {"f32[6,2] 2"})),
    copy_operator("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
                  "SplitWithSizesBackward0_copy", copied<split_with_sizes_geometry>, split_gradient,
                  {"f32[6,2] (1 5)"}),
    taking(kUnbindTakes,
           copy_operator("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", "UnbindBackward0_copy",
                         copied<unbind_geometry>, unbind_gradient, {"f32[2,3]"}))};

// ATen/native/cuda/TensorShape.cu, split_with_sizes_copy_out_cuda, for dense tensors of one dtype: a table of int64 is
// copied to the device: four numbers for each part (two addresses, its length, its first thread block), an end, and the
// part of each thread block of a row. A block moves 2048 bytes as often as makes half of its waves the square root of
// all, and so often that a row has two waves at most (recorded on devices of 40 and 132 multiprocessors, 1 to 1563 waves).
void split_out_cuda(Call& c) {
  constexpr double kBlockBytes = 128 * 16;
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  int64_t rows = 1, length = element_size(self.dtype());
  for (int64_t d = 0; d < dim; ++d) rows *= self.size(d);
  for (int64_t d = dim + 1; d < self.dim(); ++d) length *= self.size(d);
  const auto blocks = [&](double times) {
    int64_t sum = 0;
    for (const int64_t size : c.ints("split_sizes"))
      sum += static_cast<int64_t>(std::ceil(static_cast<double>(size * length) / (kBlockBytes * times)));
    return sum;
  };
  for (const Tensor& out : c.tensors("out"))
    if (!out->dense || !self->dense || out.dtype() != self.dtype()) return;
  const int64_t resident = c.ask([](const Platform& platform) {
    return int64_t{platform.hardware.multiprocessors} * (platform.hardware.threads_per_multiprocessor / 128);
  });
  const double wave = static_cast<double>(std::max<int64_t>(resident, 1));
  const auto waves = static_cast<double>(blocks(1) * rows) / wave;
  const double times = std::max(
      {1.0, std::round(std::sqrt(waves / 2)), std::ceil(static_cast<double>(blocks(1)) / (2 * wave))});
  auto table = c.temporary_bytes(8 * (4 * int64_t(c.ints("split_sizes").size()) + 1 + blocks(times)));
}

void split_out_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  int64_t sum = 0;
  for (const int64_t size : c.ints("split_sizes")) {
    if (size < 0 || size > self.size(dim)) c.error("a part is longer than the tensor");
    sum += size;
  }
  if (self.dim() == 0 || sum != self.size(dim)) c.error("the parts are not as long as the tensor");
}

constexpr Op kCopiesInto[] = {
    {.schema =
         "split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes, int dim=0, *, Tensor(a!)[] out) -> ()",
     .summary = "copies of parts of these lengths, written to tensors that are there",
     .meta = split_out_meta,
     .host_code = {{DeviceType::cuda, split_out_cuda}},
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"f32[2,6] (1 5) 1 (f32[2,1] f32[2,5])"}}};

// The tensor itself takes the view's geometry.
template <void (*geometry)(Call&)>
void in_place(Call& c) {
  geometry(c);
  const Tensor view = c.results[0].take_tensor();
  c.results.clear();
  change_geometry(c.tensor("self"), view.sizes(), view.strides(), view->offset);
  c.result(c.tensor("self"));
}

constexpr Op in_place_operator(std::string_view schema, std::string_view node, void (*meta)(Call&),
                               Formula backward, const Examples& examples) {
  return {.schema = schema,
          .summary = "the tensor itself under the view's sizes",
          .meta = meta,
          .derivatives = {{{"self"}, {}, backward}},
          .flops = free_of_flops,
          .examples = examples,
          .facts = {.node = node, .reads_marks = kConjugated | kNegated}};
}

constexpr Op kInPlace[] = {
    in_place_operator("squeeze_(Tensor(a!) self) -> Tensor(a!)", "SqueezeBackward3",
                      in_place<squeeze_geometry>, squeeze_backward, {"f32[2,1,3]"}),
    in_place_operator("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)", "SqueezeBackward4",
                      in_place<squeeze_dim_geometry>, squeeze_dim_backward, {"f32[2,1,3] 1"}),
    in_place_operator("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)", "SqueezeBackward5",
                      in_place<squeeze_dims_geometry>, squeeze_dims_backward, {"f32[2,1,3] (1)"}),
    in_place_operator("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "UnsqueezeBackward1",
                      in_place<unsqueeze_geometry>, unsqueeze_backward, {"f32[2,3] 1"}),
    in_place_operator("as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? "
                      "storage_offset=None) -> Tensor(a!)",
                      "AsStridedBackward1", in_place<as_strided_geometry>, as_strided_gradient,
                      {"f32[2,3] (3 2) (1 3)"}),
    in_place_operator("t_(Tensor(a!) self) -> Tensor(a!)", "TBackward1", in_place<t_geometry>, t_backward,
                      {"f32[2,3]"}),
    in_place_operator("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "TransposeBackward1",
                      in_place<transpose_geometry>, transpose_backward, {"f32[2,3] 0 1"})};

void narrow_copy_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes sizes = self.sizes();
  sizes[size_t(wrap_dim(c.integer("dim"), self.dim()))] = c.integer("length");
  c.output(sizes, self.dtype());
}

Gradients narrow_copy_gradient(Backward& b) {
  const int64_t start = b["start"].integer();
  return {call<"slice_backward">(b.session, b.grad(), b.sizes("self"), b["dim"], start,
                                 start + b["length"].integer(), 1)};
}

constexpr Op narrow_copy(const Derivatives& derivatives) {
  return {.schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
          .summary = "a copy of a slice by start and length",
          .meta = narrow_copy_meta,
          .derivatives = derivatives,
          .flops = free_of_flops,
          .examples = {"f32[8,3] 0 1 4"},
          .facts = {.takes = "dim in self, length >= 0"}};
}

constexpr Op kViewCopy[] = {before({2, 12}, narrow_copy(not_differentiable)),
                            since({2, 12}, narrow_copy({{{"self"}, {}, narrow_copy_gradient}}))};

}  // namespace

Tables view_copy_operators() {
  static constexpr Records tables[] = {kCopies, kCopiesInto, kInPlace, kViewCopy};
  return tables;
}

}  // namespace metaprof
