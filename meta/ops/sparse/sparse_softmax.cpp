// softmax over the elements that coordinates have along a dimension: what is not there counts as −∞
// (native/sparse/cuda/SoftMax.cu, native/sparse/ParamUtils.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/sparse/sparse.h"

namespace metaprof {
namespace {

// Elements that differ along `dim` only are a pool. How many pools there are is data: as if the elements had as many
// others as there can be.
int64_t count_of_pools(const Call& c, const Tensor& self, size_t dim) {
  note_assumed(c);
  const Tensor indices = sparse_part(self, 0);
  int64_t pools = 1;
  for (int64_t d = 0; d < indices.size(0); ++d)
    if (size_t(d) != dim) pools = multiply(pools, self.size(d));
  return std::min(indices.size(1), pools);
}

// get_offsets: one number for each element, made with strides that are copied to the device.
Tensor pool_numbers(const Call& c, const Tensor& indices) {
  const Tensor strides = c.session.empty(Sizes{indices.size(0)}, DType::i64, indices.device());
  return c.session.empty(Sizes{indices.size(1)}, DType::i64, indices.device());
}

struct Pools {
  Tensor sizes, sorted, starts, maxima;
};

// compute_pool_max: elements sorted by pool, the pools' sizes and where they begin; with their maxima where asked.
Pools pools_of(Call& c, const Tensor& self, size_t dim, bool with_maxima) {
  Session& s = c.session;
  const Tensor indices = sparse_part(self, 0), values = sparse_part(self, 1);
  const int64_t count = indices.size(1), pools = count_of_pools(c, self, dim);
  const Tensor numbers = pool_numbers(c, indices);
  Pools made;
  made.sorted = s.empty(Sizes{count}, DType::i64, self.device());
  c.temporary_bytes(thrust_sort_by_key_bytes(count, 8, 0));
  const Tensor sizes = s.empty(Sizes{count}, DType::i64, self.device());
  c.temporary_bytes(thrust_reduce_by_key_bytes(count));
  made.sizes = narrow(sizes, 0, 0, pools);
  made.starts = clone(made.sizes);
  c.temporary_bytes(cub_scan_bytes(pools, 8));
  if (with_maxima)
    made.maxima =
        s.empty(Sizes{pools * values.numel() / std::max<int64_t>(count, 1)}, self.dtype(), self.device());
  return made;
}

const Tensor& checked_coordinates(Call& c, Name name) {
  const Tensor& self = c.tensor(name);
  if (self->layout != Layout::sparse)
    c.error(fmt::format("expects coordinates (COO), got a {} tensor", name_of(self->layout)));
  return self;
}

// A result over copies of the coordinates: room for values first.
Tensor like_coordinates(Session& s, const Tensor& self, const Tensor& values) {
  Tensor result = make_sparse(s, clone(sparse_part(self, 0)), values, self.sizes());
  result->extra->coalesced = true;
  return result;
}

template <FixedString dense>
void sparse_softmax_kernel(Call& c) {
  const BelowAutograd below(c.session);
  if (c.boolean("half_to_float")) c.error("the framework has no conversion from half to float here");
  const Tensor self = call<"coalesce">(c.session, checked_coordinates(c, "self"));
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim()), sparse_dims = sparse_part(self, 0).size(0);
  Tensor result = like_coordinates(c.session, self, empty_like(sparse_part(self, 1)));
  if (dim >= sparse_dims) {
    const Tensor values = call<dense>(c.session, sparse_part(self, 1), dim - sparse_dims + 1, false);
    result->extra->parts[1] = alias(values);
  } else if (c.on_cuda()) {
    pools_of(c, self, size_t(dim), true);
  }
  c.result(result);
}

template <FixedString dense>
void sparse_softmax_backward_kernel(Call& c) {
  const BelowAutograd below(c.session);
  Session& s = c.session;
  const Tensor grad = call<"coalesce">(s, checked_coordinates(c, "grad_output"));
  const Tensor output = call<"coalesce">(s, checked_coordinates(c, "output"));
  const int64_t dim = wrap_dim(c.integer("dim"), output.dim()), sparse_dims = sparse_part(output, 0).size(0);
  const Tensor values = empty_like(sparse_part(output, 1));
  Tensor result = like_coordinates(s, output, values);
  if (c.on_cuda()) {
    const Tensor numbers = pool_numbers(c, sparse_part(output, 0)),
                 grad_numbers = pool_numbers(c, sparse_part(grad, 0));
    if (dim >= sparse_dims) {
      result->extra->parts[1] = alias(call<dense>(s, sparse_part(grad, 1), sparse_part(output, 1),
                                                  dim - sparse_dims + 1, c.tensor("self").dtype()));
    } else {
      const Tensor matches = empty_like(numbers);
      pools_of(c, output, size_t(dim), false);
    }
  }
  c.result(result);
}

template <FixedString name>
void sparse_softmax_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor converted = c.given("dtype") ? to(self, c.dtype("dtype", self.dtype())) : self;
  c.result(call<name>(c.session, converted, c["dim"], false));
}

template <FixedString name>
Gradients sparse_softmax_gradient(Backward& b) {
  return {call<name>(b.session, b.grad(), b("result"), b["dim"], b("self"))};
}

template <int64_t for_each>
FlopCount flops_of_values(const Call& c) {
  const Tensor& sparse = c.arguments[0].tensor();
  return {.own = sparse.is_sparse() ? for_each * sparse_part(sparse, 1).numel() : 0};
}

constexpr const char* kForward = "f32[4,3]sparse(i64[2,5] f32[5]) 1 False";
constexpr const char* kBackward =
    "f32[4,3]sparse(i64[2,5] f32[5]) f32[4,3]sparse(i64[2,5] f32[5]) 1 f32[4,3]sparse(i64[2,5] f32[5])";

constexpr Op softmax_of_coordinates(std::string_view schema, std::string_view summary, void (*kernel)(Call&),
                                    Formula::Function gradient) {
  return {.schema = schema,
          .summary = summary,
          .meta = kernel,
          .derivatives = {{{"self"}, {"result", "self"}, gradient}},
          .flops = flops_of_values<3>,
          .examples = {kForward},
          .facts = {.reads_data = true}};
}

constexpr Op backward_of_coordinates(std::string_view schema, std::string_view summary,
                                     void (*kernel)(Call&)) {
  return {.schema = schema,
          .summary = summary,
          .meta = kernel,
          .derivatives = not_differentiable,
          .flops = flops_of_values<4>,
          .examples = {kBackward},
          .facts = {.reads_data = true}};
}

constexpr Op kSparseSoftmax[] = {
    composite_of("_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                 "softmax of the elements that are there", sparse_softmax_body<"_sparse_softmax">,
                 {"f32[4,3]sparse(i64[2,5] f32[5]) 1"}),
    composite_of("_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                 "log of softmax of the elements that are there", sparse_softmax_body<"_sparse_log_softmax">,
                 {"f32[4,3]sparse(i64[2,5] f32[5]) 1"}),
    softmax_of_coordinates("_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
                           "softmax of the elements that are there", sparse_softmax_kernel<"_softmax">,
                           sparse_softmax_gradient<"_sparse_softmax_backward_data">),
    softmax_of_coordinates("_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
                           "log of softmax of the elements that are there",
                           sparse_softmax_kernel<"_log_softmax">,
                           sparse_softmax_gradient<"_sparse_log_softmax_backward_data">),
    backward_of_coordinates(
        "_sparse_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) -> Tensor",
        "output · (grad − Σ grad · output)", sparse_softmax_backward_kernel<"_softmax_backward_data">),
    backward_of_coordinates("_sparse_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                            "Tensor self) -> Tensor",
                            "grad − exp(output) · Σ grad",
                            sparse_softmax_backward_kernel<"_log_softmax_backward_data">)};

}  // namespace

Tables sparse_softmax_operators() {
  static constexpr Records tables[] = {kSparseSoftmax};
  return tables;
}

}  // namespace metaprof
