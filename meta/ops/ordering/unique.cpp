// Each value or slice once: how many there are is data (aten/src/ATen/native/Unique.cpp, cuda/UniqueCub.cu,
// cuda/Unique.cu).

#include <algorithm>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/ordering/family.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"

namespace metaprof {
namespace {

// --- values of the flattened tensor

void unique_outputs(Call& c, bool inverse, bool counts) {
  const Tensor& self = c.tensor("self");
  const int64_t values = size_by_data(c);
  c.output(Sizes{values}, self.dtype());
  if (inverse) {
    c.output(self.sizes(), DType::i64);
  } else {
    c.output(Sizes{0}, DType::i64);
  }
  c.output(Sizes{counts ? values : 0}, DType::i64);
}

// Every result has room for as many as there are elements.
void unique_memory(Call& c, bool consecutive, bool inverse, bool counts) {
  const Tensor self = c.contiguous(c.tensor("self"));
  const int64_t count = self.numel(), element = element_size(self.dtype());
  if (!inverse) c.allocate(1);  // no elements, no block
  if (!counts && c.results.size() > 2) c.allocate(2);
  if (count == 0) return c.allocate_all();
  Tensor sorted, places;
  if (!consecutive) {
    sorted = c.temporary(Sizes{count}, self.dtype());
    if (inverse) {
      const Tensor range = c.temporary(Sizes{count}, DType::i64);
      places = c.temporary(Sizes{count}, DType::i64);
      c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, element, 8, 8 * element));
    } else {
      c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, element, 0, 8 * element));
    }
  }
  if (inverse) {
    c.allocate(1);
    const Tensor starts = c.temporary(Sizes{count}, DType::i64);
    c.temporary_bytes(cub_scan_bytes(count, 4));
  }
  c.allocate(0, count * element);
  const Tensor length = c.temporary(Sizes{1}, DType::i64);
  if (counts) {
    c.allocate(2, count * 8);
    c.temporary_bytes(cub_run_length_bytes(count));
  } else {
    c.temporary_bytes(cub_bytes<cub_unique_bytes>(c, count, element));
  }
}

// --- slices along a dimension

// Slices come one below the other first; the host then moves their dimension to its place.
void unique_slices_meta(Call& c, bool inverse, bool counts) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim()), slices = self.size(dim);
  const int64_t unique = slices == 0 ? 0 : size_by_data(c, size_t(dim));
  Sizes below{unique};
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) below.push_back(self.size(d));
  Sizes sizes = self.sizes(), strides = contiguous_strides(below);
  sizes[size_t(dim)] = unique;
  std::rotate(strides.begin(), strides.begin() + 1, strides.begin() + 1 + dim);
  if (c.on_cuda()) strides = contiguous_strides(sizes);
  c.output(sizes, strides, self.dtype());
  c.output(Sizes{inverse ? slices : 0}, DType::i64);
  c.output(Sizes{counts ? unique : 0}, DType::i64);
}

// compute_unique: where each slice went, by sums of what differs from its neighbour; then the slices that are left, and
// how often each occurred, by differences of where they begin.
void compute_unique(Call& c, int64_t slices, int64_t unique, bool inverse, bool counts) {
  if (inverse) {
    const Tensor differs = c.temporary(Sizes{slices}, DType::i64);
    c.allocate(1);
    c.temporary_bytes(thrust_adjacent_difference_bytes());
    c.temporary_bytes(cub_bytes<thrust_sum_bytes>(c, slices));
  }
  if (!counts) {
    c.temporary_bytes(thrust_unique_bytes(slices));
    return;
  }
  const Tensor begins = c.temporary(Sizes{slices + 1}, DType::i64);
  c.temporary_bytes(cub_bytes<thrust_unique_by_key_bytes>(c, slices));
  c.allocate(2);
  if (unique > 0) c.temporary_bytes(thrust_adjacent_difference_bytes());
}

void unique_slices_cuda(Call& c, bool consecutive, bool inverse, bool counts) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim()), slices = self.size(dim);
  if (slices > 0) {
    const Tensor below = c.contiguous(call<"movedim.int">(c.session, self, dim, 0));
    const Tensor order = c.temporary(Sizes{slices}, DType::i64);
    if (!consecutive) c.temporary_bytes(thrust_sort_by_key_bytes(slices, 8, 0));
    compute_unique(c, slices, c.result_tensor().size(dim), inverse, counts);
    c.allocate(0);
  }
  c.allocate_all();
}

// --- both

void unique_consecutive_meta(Call& c) {
  const auto result = c.given("dim") ? unique_slices_meta : unique_outputs;
  result(c, c.boolean("return_inverse"), c.boolean("return_counts"));
}

void unique_consecutive_cuda(Call& c) {
  const auto memory = c.given("dim") ? unique_slices_cuda : unique_memory;
  memory(c, true, c.boolean("return_inverse"), c.boolean("return_counts"));
}

constexpr Op unique(std::string_view schema, std::string_view summary, Meta meta, void (*kernel)(Call&),
                    std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = {{{"self"}, {}, not_implemented}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.reads_data = true, .host_reads = true}};
}

constexpr Op kUnique[] = {
    unique(
        "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
        "(Tensor, Tensor, Tensor)",
        "each value once, where it was, how often",
        [](Call& c) { unique_outputs(c, c.boolean("return_inverse"), c.boolean("return_counts")); },
        [](Call& c) { unique_memory(c, false, c.boolean("return_inverse"), c.boolean("return_counts")); },
        "f32[2,3]"),
    unique(
        "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
        "each value once, and where it was",
        [](Call& c) {
          const Tensor& self = c.tensor("self");
          c.output(Sizes{size_by_data(c)}, self.dtype());
          c.output(c.boolean("return_inverse") ? self.sizes() : Sizes{0}, DType::i64);
        },
        [](Call& c) { unique_memory(c, false, c.boolean("return_inverse"), false); }, "f32[4]"),
    unique(
        "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
        "return_counts=False) -> (Tensor, Tensor, Tensor)",
        "each slice once, where it was, how often",
        [](Call& c) { unique_slices_meta(c, c.boolean("return_inverse"), c.boolean("return_counts")); },
        [](Call& c) {
          unique_slices_cuda(c, false, c.boolean("return_inverse"), c.boolean("return_counts"));
        },
        "f32[4,3] 0"),
    unique(
        "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) "
        "-> (Tensor, Tensor, Tensor)",
        "each run of a slice once, where it was, how long",
        [](Call& c) { unique_slices_meta(c, c.boolean("return_inverse"), c.boolean("return_counts")); },
        [](Call& c) { unique_slices_cuda(c, true, c.boolean("return_inverse"), c.boolean("return_counts")); },
        "f32[4,3] 0"),
    unique("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? "
           "dim=None) -> (Tensor, Tensor, Tensor)",
           "each run of a value or a slice once, where it was, how long", unique_consecutive_meta,
           unique_consecutive_cuda, "f32[2,3]")};

}  // namespace

Tables unique_operators() {
  static constexpr Records tables[] = {kUnique};
  return tables;
}

}  // namespace metaprof
