// Operators whose result depends on values: where elements are not 0, how often values occur, where they belong.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/ordering/family.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/rules/sizes_by_data.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

constexpr Facts kReadsOnHost = {.reads_data = true, .host_reads = true};
constexpr Facts kReadsData = {.cudagraph_unsafe = true, .reads_data = true};  // of composites

// --- nonzero: [how many, dimensions], written transposed

void nonzero_meta(Call& c) {
  const int64_t dims = c.tensor("self").dim();
  const int64_t rows = size_by_data(c);
  c.output(Sizes{rows, dims}, Sizes{1, std::max<int64_t>(rows, 1)}, DType::i64);
}

// aten/src/ATen/native/cuda/Nonzero.cu: a count per chunk, then the places.
void nonzero_cuda(Call& c) {
  const Tensor self = c.contiguous(c.tensor("self"));
  constexpr int64_t chunk = int64_t{INT32_MAX} / 1024 * 1024 + 1024;
  const int64_t chunks = (self.numel() + chunk - 1) / chunk;
  auto counts = c.temporary_bytes(4 * chunks);
  for (int64_t begin = 0; begin < self.numel(); begin += chunk)
    c.temporary_bytes(cub_bytes<cub_sum_bytes>(c, std::min(chunk, self.numel() - begin)));
  c.allocate(0);
  if (self.dim() == 0) return;
  for (int64_t begin = 0; begin < self.numel(); begin += chunk)
    c.temporary_bytes(cub_bytes<cub_flagged_bytes>(c, std::min(chunk, self.numel() - begin)));
}

void nonzero_numpy_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Tensor input = self.dim() == 0 ? unsqueeze(self, 0) : self;
  const Tensor places = call<"nonzero">(c.session, input);
  c.result(call_all<"unbind.int">(c.session, places, 1).value());
}

// Sums of thread blocks, then their cumulative sums (aten/src/ATen/native/cuda/Nonzero.cu).
void nonzero_static_cuda(Call& c) {
  constexpr int64_t kBlockElements = int64_t{512} * 16;
  const Tensor self = c.contiguous(c.tensor("self"));
  c.allocate(0);
  if (c.result_tensor().numel() == 0 || self.numel() == 0) return;
  auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  const int64_t needed = parts(self.numel(), kBlockElements),
                per_multiprocessor = element_size(self.dtype()) == 1 ? 2 : 1;
  const int64_t rounds = c.ask([=](const Platform& platform) {
    return parts(needed, platform.hardware.multiprocessors * per_multiprocessor);
  });
  const int64_t blocks = parts(self.numel(), rounds * kBlockElements);
  const auto sums = c.temporary_bytes(4 * blocks);
  const auto cumulative = c.temporary_bytes(8 * blocks);
}

void argwhere_body(Call& c) { c.result(call<"nonzero">(c.session, c["self"])); }

constexpr Op kNonzero[] = {
    {.schema = "nonzero(Tensor self) -> Tensor",
     .summary = "places of the elements that are not 0",
     .meta = nonzero_meta,
     .host_code = {{DeviceType::cuda, nonzero_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3]"},
     .facts = kReadsOnHost},
    {.schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
     .summary = "places of the first elements that are not 0",
     .meta =
         [](Call& c) {
           const int64_t rows = c.integer("size"), dims = c.tensor("self").dim();
           // The GPU writes dimension by dimension.
           c.output(Sizes{rows, dims}, c.on_cuda() ? Sizes{1, rows} : Sizes{dims, 1}, DType::i64);
         },
     .host_code = {{DeviceType::cuda, nonzero_static_cuda}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[2,3] 4"}},
    composite_of("nonzero_numpy(Tensor self) -> Tensor[]", "places of what is not 0, by dimension",
                 nonzero_numpy_body, {"f32[2,3]"}, kReadsData),
    composite_of("argwhere(Tensor self) -> Tensor", "places of the elements that are not 0", argwhere_body,
                 {"f32[2,3]"}, kReadsData),
    composite_of(
        "where(Tensor condition) -> Tensor[]", "places of what is true, by dimension",
        [](Call& c) { c.result(call_all<"nonzero_numpy">(c.session, c["condition"]).value()); }, {"b8[2,3]"},
        kReadsData)};

// --- histc, bincount, one_hot

void histc_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  c.allocate(0);
  if (c.real("min") != c.real("max") || self.numel() == 0) return;
  { const Tensor smallest = call<"min">(c.session, self); }
  const Tensor largest = call<"max">(c.session, self);
}

void bincount_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.numel() == 0) return c.allocate(0);
  { const Tensor smallest = call<"min">(c.session, self); }
  { const Tensor largest = call<"max">(c.session, self); }
  c.allocate(0);
}

void bincount_meta(Call& c) {
  const Tensor& weights = c.tensor("weights");
  DType dtype = DType::i64;
  if (weights.defined()) dtype = weights.dtype() == DType::f32 ? DType::f32 : DType::f64;
  // The largest value is data; where the program does not say what follows, it counts as 0.
  const int64_t bins =
      std::max({c.integer("minlength"), c.tensor("self").numel() > 0 ? int64_t{1} : 0, size_by_data(c)});
  c.output(Sizes{bins}, dtype);
}

// Without a number of classes the largest value decides; where the program does not say what follows, it counts as 0.
void one_hot_body(Call& c) {
  const Tensor& self = c.tensor("self");
  int64_t classes = c.integer("num_classes");
  if (classes == -1) {
    const Tensor largest = call<"max">(c.session, self);
    classes = std::max<int64_t>(1, size_by_data(c, size_t(self.dim())));
  }
  Sizes sizes = self.sizes();
  sizes.push_back(classes);
  const Tensor out = zeros_of(self, sizes);
  const Tensor places = unsqueeze(self, -1);
  c.result(call<"scatter_.value">(c.session, out, -1, places, 1));
}

constexpr Op kCounts[] = {
    {.schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
     .summary = "how many elements fall into each of equal bins",
     .meta = [](Call& c) { c.output(Sizes{c.integer("bins")}, c.tensor("self").dtype()); },
     .host_code = {{DeviceType::cuda, histc_kernel}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"f32[6] 3 0 1"},
     .facts = kReadsOnHost},
    {.schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
     .summary = "how often each number occurs",
     .meta = bincount_meta,
     .host_code = {{DeviceType::cuda, bincount_kernel}},
     .derivatives = not_differentiable,
     .flops = input_flops,
     .examples = {"i64[4] None 3"},
     .facts = kReadsOnHost},
    composite_of("one_hot(Tensor self, int num_classes=-1) -> Tensor",
                 "1 at the place of each number, 0 elsewhere", one_hot_body, {"i64[4] 5"},
                 {.one_of_last = true})};

// --- isin

// Few things to look for are compared one by one, many are sorted with all the rest
// (aten/src/ATen/native/TensorCompare.cpp, isin_Tensor_Tensor_out).
void isin_meta(Call& c) { c.output(c.tensor("elements").sizes(), DType::b8); }

void isin_cuda(Call& c) {
  const Tensor &elements = c.tensor("elements"), &tests = c.tensor("test_elements");
  Session& s = c.session;
  c.allocate(0);
  if (elements.numel() == 0) return;
  if (double(tests.numel()) < 10.0 * std::pow(double(elements.numel()), 0.145)) {
    const Tensor wide = unsqueeze(elements, -1), flat = view(tests, Sizes{1, -1});
    const Tensor alike = c.boolean("invert") ? ne(wide, flat) : eq(wide, flat);
    const Tensor found = c.boolean("invert") ? call<"all.dim">(s, alike, -1) : call<"any.dim">(s, alike, -1);
    return;
  }
  if (c.boolean("assume_unique")) c.error("large sets that are assumed to be unique are not modelled");
  c.error("large sets depend on how many values are unique: not modelled");
}

constexpr Op kMembership[] = {{.schema = "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool "
                                         "assume_unique=False, bool invert=False) -> Tensor",
                               .summary = "which elements are among the others",
                               .meta = isin_meta,
                               .host_code = {{DeviceType::cuda, isin_cuda}},
                               .derivatives = not_differentiable,
                               .flops = input_flops,
                               .examples = {"f32[20] f32[5]"}}};

// --- searchsorted, bucketize (aten/src/ATen/native/cuda/Bucketization.cu)

// Operands are made contiguous and of one dtype after the result has memory.
void search(Call& c, const Tensor& boundaries, const Tensor& self, const Tensor& sorter) {
  if (sorter.defined() && sorter.numel() > 0) {
    Results extremes = call_all<"aminmax">(c.session, sorter);
  }
  c.allocate(0);
  if (self.numel() == 0 || boundaries.numel() == 0) return;
  Tensor input = c.contiguous(self), sequence = c.contiguous(boundaries), order;
  if (sorter.defined()) order = c.contiguous(sorter);
  if (sequence.dtype() != input.dtype()) {
    const DType common = result_type({&sequence, &input});
    input = to(input, common);
    sequence = to(sequence, common);
  }
}

DType place_dtype(const Call& c) { return c.boolean("out_int32") ? DType::i32 : DType::i64; }

constexpr Op searching(std::string_view schema, Meta meta, void (*kernel)(Call&), std::string_view example) {
  return {.schema = schema,
          .summary = "places at which elements keep the boundaries sorted",
          .meta = meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = not_differentiable,
          .flops = elementwise_flops<1>,
          .examples = {example}};
}

constexpr Op kSearches[] = {
    searching(
        "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor",
        [](Call& c) { c.output(c.tensor("self").sizes(), place_dtype(c)); },
        [](Call& c) { search(c, c.tensor("sorted_sequence"), c.tensor("self"), c.tensor("sorter")); },
        "f32[4] f32[2,3]"),
    searching(
        "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor",
        [](Call& c) { c.output({}, place_dtype(c)); },
        [](Call& c) {
          const Tensor& boundaries = c.tensor("sorted_sequence");
          const Tensor number = c.temporary({}, is_floating(boundaries.dtype()) ? DType::f64 : DType::i64);
          number->wrapped_number = true;
          search(c, boundaries, number, c.tensor("sorter"));
        },
        "f32[4] 0.5"),
    searching(
        "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
        "Tensor",
        [](Call& c) { c.output(c.tensor("self").sizes(), place_dtype(c)); },
        [](Call& c) { search(c, c.tensor("boundaries"), c.tensor("self"), Tensor()); }, "f32[2,3] f32[4]")};

}  // namespace

Tables searching_operators() {
  static constexpr Records tables[] = {kNonzero, kCounts, kSearches, kMembership};
  return tables;
}

}  // namespace metaprof
