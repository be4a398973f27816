// Sequences, identity matrices, triangles and their indices.

#include <fmt/format.h>

#include <cmath>

#include "meta/ops/creation/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/no_gradient.h"

namespace metaprof {
namespace {

Device device_of(const Call& c) { return c.given("device") ? c["device"].device() : c.session.device; }

void made(Call& c, const Sizes& sizes, DType otherwise) {
  c.output(sizes, contiguous_strides(sizes), c.dtype("dtype", otherwise), device_of(c));
}

// --- sequences. Ends that are tensors on the device are copied to the host first; how many steps there are
// is known without them.

void steps_meta(Call& c) {
  const int64_t steps = c.integer("steps");
  if (steps < 0) c.error(fmt::format("the number of steps must not be negative, got {}", steps));
  made(c, Sizes{steps}, is_complex(result_type(c.arguments.first(2))) ? DType::c64 : kDefaultDType);
}

constexpr Op kSequences[] = {
    no_gradient("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal steps from start to end", steps_meta, {"0 1 5"}),
    no_gradient("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, "
                "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal steps from start to end", steps_meta, {"f32[] f32[] 5"}),
    no_gradient("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, "
                "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal steps from start to end", steps_meta, {"f32[] 1 5"}),
    no_gradient("linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, "
                "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal steps from start to end", steps_meta, {"0 f32[] 5"}),
    no_gradient("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, "
                "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal factors from base^start to base^end", steps_meta, {"0 1 5"}),
    no_gradient("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, ScalarType? "
                "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal factors from base^start to base^end", steps_meta, {"f32[] f32[] 5"}),
    no_gradient("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, ScalarType? "
                "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal factors from base^start to base^end", steps_meta, {"f32[] 1 5"}),
    no_gradient("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, ScalarType? "
                "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "equal factors from base^start to base^end", steps_meta, {"0 f32[] 5"})};

// --- matrices

// Elements on and below a diagonal (ATen/native/TensorFactories.h, get_tril_size).
int64_t triangle_size(int64_t rows, int64_t columns, int64_t offset) {
  if (rows == 0 || columns == 0) return 0;
  offset = std::clamp(offset, -rows, columns);
  const int64_t first = offset > 0 ? std::min(columns, 1 + offset) : int64_t(rows + offset > 0);
  const int64_t last = std::max<int64_t>(0, std::min(columns, rows + offset));
  const int64_t all_rows = std::max<int64_t>(0, std::min(rows, rows + offset));
  const int64_t slanted = last - first + 1;
  const int64_t size = multiply(first + last, slanted) / 2;
  return all_rows > slanted ? size + multiply(all_rows - slanted, columns) : size;
}

void tril_indices_meta(Call& c) {
  made(c, Sizes{2, triangle_size(c.integer("row"), c.integer("col"), c.integer("offset"))}, DType::i64);
}
void triu_indices_meta(Call& c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col");
  const int64_t below = std::max(c.integer("offset"), -rows) - 1;
  made(c, Sizes{2, multiply(rows, columns) - triangle_size(rows, columns, below)}, DType::i64);
}

constexpr Facts kMatrixTaken = {.takes = "row >= 0, col >= 0"};

constexpr Op kMatrices[] = {
    no_gradient("eye(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                "pin_memory=None) -> Tensor",
                "identity matrix",
                [](Call& c) {
                  made(c, Sizes{c.integer("n"), c.integer("n")}, kDefaultDType);
                },
                {"3"}),
    no_gradient("eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                "device=None, bool? pin_memory=None) -> Tensor",
                "identity matrix",
                [](Call& c) {
                  made(c, Sizes{c.integer("n"), c.integer("m")}, kDefaultDType);
                },
                {"3 4"}),
    no_gradient("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "indices on and below a diagonal", tril_indices_meta, {"3 4"}, kMatrixTaken),
    no_gradient("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "indices on and above a diagonal", triu_indices_meta, {"3 4"}, kMatrixTaken)};

void triangle_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() < 2) c.error(fmt::format("expects matrices, got {}", describe(self)));
  c.output(self.sizes(), self.dtype());
}

// Zeros with a vector on each diagonal.
void diag_embed_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t dims = self.dim() + 1;
  const int64_t dim1 = wrap_dim(c.integer("dim1"), dims), dim2 = wrap_dim(c.integer("dim2"), dims);
  if (dim1 == dim2) c.error(fmt::format("the dimensions must differ; got {} twice", dim1));
  const int64_t length = self.size(-1) + std::abs(c.integer("offset"));
  Sizes sizes = without_last(self.sizes(), 1);
  sizes.insert(size_t(std::min(dim1, dim2)), length);
  sizes.insert(size_t(std::max(dim1, dim2)), length);
  c.output(sizes, self.dtype());
}

void diag_body(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() == 1) return c.result(call<"diag_embed">(c.session, self, c["diagonal"]));
  if (self.dim() == 2) return c.result(call<"diagonal_copy">(c.session, self, c["diagonal"], 0, 1));
  c.error(fmt::format("expects a vector or a matrix, got {}", describe(self)));
}

constexpr Op triangle(std::string_view schema, std::string_view summary, Formula formula) {
  return {.schema = schema,
          .summary = summary,
          .meta = triangle_meta,
          .derivatives = {{{"self"}, {}, formula}},
          .flops = free_of_flops,
          .examples = {"f32[3,4]", "f32[2,3,3] 1"},
          .facts = {.in_place_too = true}};
}

constexpr Op kTriangles[] = {
    triangle("tril(Tensor self, SymInt diagonal=0) -> Tensor", "0 above a diagonal",
             [](Backward& b) { return call<"tril">(b.session, b.grad(), b["diagonal"]); }),
    triangle("triu(Tensor self, SymInt diagonal=0) -> Tensor", "0 below a diagonal",
             [](Backward& b) { return call<"triu">(b.session, b.grad(), b["diagonal"]); }),
    {.schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
     .summary = "vectors on diagonals",
     .meta = diag_embed_meta,
     .derivatives = {{{"self"},
                      {},
                      [](Backward& b) {
                        return call<"diagonal">(b.session, b.grad(), b["offset"], b["dim1"], b["dim2"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3]", "f32[3] 1"}},
    composite_of("diag(Tensor self, int diagonal=0) -> Tensor",
                 "a vector on a diagonal, or a diagonal as a vector", diag_body, {"f32[3]", "f32[3,4] 1"}),
    composite_of("diagflat(Tensor self, int offset=0) -> Tensor", "all elements on a diagonal",
                 [](Call& c) {
                   const Tensor flat = view(contiguous(c.tensor("self")), Sizes{-1});
                   c.result(call<"diag">(c.session, flat, c["offset"]));
                 },
                 {"f32[2,2]"})};

// --- like another tensor

void new_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const Device device = c.given("device") ? c["device"].device() : self.device();
  c.output(c.ints("size"), contiguous_strides(c.ints("size")), c.dtype("dtype", self.dtype()), device);
}

// The physical layout lists dimensions from the outermost in.
void empty_permuted_meta(Call& c) {
  const Sizes &sizes = c.ints("size"), &layout = c.ints("physical_layout");
  if (sizes.size() != layout.size())
    c.error(fmt::format("{} dimensions have a layout of {}", sizes.size(), layout.size()));
  Sizes strides(sizes.size());
  int64_t step = 1;
  for (size_t i = layout.size(); i-- > 0;) {
    const auto d = size_t(wrap_dim(layout[i], int64_t(sizes.size())));
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  c.output(sizes, strides, c.dtype("dtype", kDefaultDType), device_of(c));
}

constexpr Op without_memory(Op op) {
  const auto no_memory = [](Call& c) { c.allocate(0, 0); };
  op.host_code = {{DeviceType::cuda, no_memory}, {DeviceType::cpu, no_memory}};
  return op;
}

constexpr Op kNew[] = {
    no_gradient("new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
                "Device? device=None, bool? pin_memory=None) -> Tensor",
                "memory of self's dtype", new_meta, {"f32[2] (2 3)"}),
    no_gradient("new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "one number of self's dtype", new_meta, {"f32[2] (2 3) 1"}),
    no_gradient("empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
                "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                "memory with its dimensions in this order", empty_permuted_meta, {"(2 3) (1 0)"}),
    without_memory(no_gradient("_efficientzerotensor(SymInt[] size, *, ScalarType? dtype=None, Layout? "
                               "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                               "zeros without memory",
                               [](Call& c) { made(c, c.ints("size"), kDefaultDType); }, {"(2 3)"}))};

}  // namespace

Tables factory_operators() {
  static constexpr Records tables[] = {kSequences, kMatrices, kTriangles, kNew};
  return tables;
}

}  // namespace metaprof
