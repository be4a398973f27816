// Sorting and the k largest.

#include "meta/ops/ordering/sorting.h"

#include <fmt/format.h>

#include <bit>

#include "core/rounding.h"
#include "meta/autograd/engine/backward.h"
#include "meta/ops/ordering/family.h"
#include "meta/ops/ordering/selection.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// --- Kernels that sort (aten/src/ATen/native/cuda/SortStable.cu)

// Up to this length a row is sorted in place without temporaries.
constexpr int64_t kSmallSort = 4096;
// A value's place and its row, as two 32-bit numbers.
constexpr int64_t kPlaceAndRow = 8;

// Row by row: places of one row, then CUB for each.
void sort_rows_one_by_one(Call& c, int64_t rows, int64_t length, int64_t key) {
  const Tensor places = c.temporary(Sizes{length}, DType::i64);
  for (int64_t row = 0; row < rows; ++row)
    c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, length, key, 8, 8 * key));
}

// All values at once, then by row: "full sort".
void sort_everything(Call& c, int64_t rows, int64_t count, int64_t key) {
  const int64_t row_bits = std::max<int64_t>(1, std::bit_width(uint64_t(rows - 1)));
  auto places = c.temporary_bytes(count * kPlaceAndRow),
       sorted_places = c.temporary_bytes(count * kPlaceAndRow);
  {
    auto sorted_keys = c.temporary_bytes(count * key);
    c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, key, kPlaceAndRow, 8 * key));
  }
  c.temporary_bytes(cub_bytes<cub_sort_bytes>(c, count, kPlaceAndRow, 0, row_bits));
}

void sort_segments(Call& c, int64_t count, int64_t key) {
  const Tensor places = c.temporary(Sizes{count}, DType::i64);
  c.temporary_bytes(cub_segmented_sort_bytes(count, key, 8));
}

// Batches of whole rows that 32-bit counts can address.
void sort_batches(Call& c, const Tensor& self, int64_t dim) {
  const int64_t length = self.size(dim), key = element_size(self.dtype());
  const int64_t batch = std::min<int64_t>(self.numel(), INT32_MAX) / length * length;
  if (batch == 0) c.error(fmt::format("{} elements cannot be sorted; at most {} can", length, INT32_MAX));
  for (int64_t remaining = self.numel(); remaining > 0; remaining -= std::min(remaining, batch)) {
    const int64_t count = std::min(remaining, batch), rows = count / length;
    if (rows == 1 || length >= 1000000) {
      sort_rows_one_by_one(c, rows, length, key);
    } else if (rows < 128) {
      sort_everything(c, rows, count, key);
    } else {
      sort_segments(c, count, key);
    }
  }
}

// Dense strides with the sorted dimension innermost.
Sizes strides_with_last(const Tensor& self, int64_t dim) {
  Sizes strides = self->dense ? self.strides() : dense_strides_like(self.sizes(), self.strides());
  const int64_t own = strides[size_t(dim)], size = self.size(dim);
  // Dimensions within the sorted one move outwards by its size.
  for (size_t d = 0; d < strides.size(); ++d)
    if (int64_t(d) != dim && strides[d] < own) strides[d] *= size;
  strides[size_t(dim)] = 1;
  return strides;
}

// --- The k largest with several blocks per row (aten/src/ATen/native/cuda/TensorTopK.cu, mbtopk)

bool takes_several_blocks(int64_t rows, int64_t length) {
  return (rows <= 20 && length >= 20000) || (rows > 20 && rows <= 40 && length >= 10000) ||
         (rows > 40 && rows <= 80 && length >= 8000) || (rows > 80 && rows < 200 && length >= 5000) ||
         (rows >= 200 && rows < 800 && length >= 3000) || (rows >= 800 && rows <= 4000 && length >= 800) ||
         (rows > 4000 && length >= 400);
}

constexpr int64_t kThreads = 256, kDigits = 256;

int64_t items_per_thread(const Hardware& device, int64_t count) {
  // 40 registers per thread of 65 536 per multiprocessor limit the blocks that run at once.
  constexpr int64_t blocks = 65536 / (40 * kThreads);
  return std::clamp<int64_t>(divide_up(count, device.multiprocessors * blocks * kThreads), 4, 64);
}

void several_blocks(Call& c, DType dtype, int64_t rows, int64_t length) {
  const int64_t value = element_size(dtype), radix = value == 8 ? 8 : 4;
  const int64_t items =
      c.ask([=](const Platform& platform) { return items_per_thread(platform.hardware, rows * length); });
  const int64_t blocks = rows * divide_up(length, items * kThreads);
  auto kth = c.temporary_bytes(rows * value);
  auto to_find = c.temporary_bytes(2 * rows * 4), desired = c.temporary_bytes(2 * rows * radix);
  auto counts = c.temporary_bytes(blocks * kDigits * 2), digit_sums = c.temporary_bytes(rows * kDigits * 4);
  auto within = c.temporary_bytes(blocks * 4), at_kth = c.temporary_bytes(blocks * 4);
  for (int scan = 0; scan < 2; ++scan) c.temporary_bytes(cub_bytes<cub_scan_by_key_bytes>(c, blocks, 4));
}

// --- Records

void sort_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  wrap_dim(c.integer("dim"), self.dim());
  c.output_like(self);
  c.output_like(self, DType::i64);
}

void sort_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  if (self.dim() == 0) return;
  sort_temporaries(c, self, c.result_tensor(0), c.result_tensor(1), wrap_dim(c.integer("dim"), self.dim()));
}

Gradients sort_backward(Backward& b) {
  return {call<"value_selecting_reduction_backward">(b.session, b.grad(), b["dim"], b("indices"),
                                                     b.sizes("self"), true)};
}

constexpr Op sort(std::string_view schema, std::string_view node, std::string_view example) {
  return {.schema = schema,
          .summary = "sorted along a dimension, and where the elements were",
          .meta = sort_meta,
          .host_code = {{DeviceType::cuda, sort_cuda}},
          .derivatives = {{{"self"}, {"indices"}, sort_backward}},
          .flops = input_flops,
          .examples = {example},
          .facts = {.node = node, .no_gradient_for = {"indices"}}};
}

void topk_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim()), k = c.integer("k");
  Sizes sizes = self.sizes();
  if (self.dim() > 0) {
    if (k < 0 || k > self.size(dim))
      c.error(fmt::format("k = {} is out of range for {} at dimension {}", k, describe(self), dim));
    sizes[size_t(dim)] = k;
  }
  c.output(sizes, self.dtype());
  c.output(sizes, DType::i64);
}

void topk_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate_all();
  if (c.integer("k") == 0 || self.dim() == 0) return;
  topk_temporaries(c, self, c.result_tensor(0), c.result_tensor(1), wrap_dim(c.integer("dim"), self.dim()),
                   c.boolean("sorted"));
}

}  // namespace

void sort_temporaries(Call& c, const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
  if (self.numel() == 0) return;
  if (self.size(dim) <= kSmallSort) {
    const Tensor places = c.temporary(Sizes{self.size(dim)}, DType::i64);
    return;
  }
  Tensor input = self;
  if (!self->dense || self.strides()[size_t(dim)] != 1)
    input = c.temporary(self.sizes(), strides_with_last(self, dim), self.dtype());
  Tensor own_values, own_indices;
  if (values.strides() != input.strides())
    own_values = c.temporary(input.sizes(), input.strides(), input.dtype());
  if (indices.strides() != input.strides())
    own_indices = c.temporary(input.sizes(), input.strides(), DType::i64);
  sort_batches(c, input, dim);
}

void topk_temporaries(Call& c, const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim,
                      bool sorted) {
  const Tensor input = c.contiguous(self);
  const int64_t length = self.size(dim), rows = length == 0 ? 0 : self.numel() / length;
  if (takes_several_blocks(rows, length)) several_blocks(c, self.dtype(), rows, length);
  if (!sorted || values.numel() <= 1 || values.size(dim) <= kSmallSort) return;
  const Tensor sorted_indices = c.temporary(indices.sizes(), indices.strides(), DType::i64);
  const Tensor sorted_values = c.temporary(values.sizes(), values.strides(), values.dtype());
  sort_temporaries(c, values, sorted_values, sorted_indices, dim);
  const Tensor gathered = gather(indices, dim, sorted_indices);
}

namespace {

constexpr Op kSorting[] = {
    sort("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
         "SortBackward0", "f32[2,3] 1"),
    sort("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
         "Tensor indices)",
         "SortBackward1", "f32[2,3] True 1"),
    {.schema = "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
               "values, Tensor indices)",
     .summary = "the k largest along a dimension, and where they were",
     .meta = topk_meta,
     .host_code = {{DeviceType::cuda, topk_cuda}},
     .derivatives = {{{"self"}, {"indices"}, sort_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3] 2", "f32[2,3] 1 0"},
     .facts = {.places_in_last = true, .no_gradient_for = {"indices"}}},
    composite_of("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
                 "where the sorted elements were",
                 [](Call& c) {
                   Results sorted = call_all<"sort">(c.session, c["self"], c["dim"], c["descending"]);
                   c.result(sorted[1]);
                 },
                 {"f32[2,3]"}),
    composite_of("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
                 "where the sorted elements were",
                 [](Call& c) {
                   Results sorted =
                       call_all<"sort.stable">(c.session, c["self"], c["stable"], c["dim"], c["descending"]);
                   c.result(sorted[1]);
                 },
                 {"f32[2,3] True"}),
    composite_of("msort(Tensor self) -> Tensor", "sorted along the first dimension",
                 [](Call& c) {
                   Results sorted = call_all<"sort">(c.session, c["self"], 0, false);
                   c.result(sorted[0]);
                 },
                 {"f32[2,3]"})};

}  // namespace

Tables sorting_operators() {
  static constexpr Records tables[] = {kSorting};
  return tables;
}

}  // namespace metaprof
