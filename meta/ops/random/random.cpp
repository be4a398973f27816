// Random numbers: factories, fills, samples.

#include <fmt/format.h>

#include <cmath>

#include "meta/autograd/engine/backward.h"
#include "meta/op/versions.h"
#include "meta/ops/ordering/sorting.h"
#include "meta/ops/random/family.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

constexpr Facts kRandom = {.random = true};

// --- factories

void sizes_meta(Call& c) {
  const Sizes& sizes = c.ints("size");
  const Device device = c.given("device") ? c["device"].device() : c.session.device;
  c.output(sizes, contiguous_strides(sizes), c.dtype("dtype", kDefaultDType), device);
}

void like_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const auto format = c.given("memory_format") ? static_cast<MemoryFormat>(c.integer("memory_format"))
                                               : MemoryFormat::preserve;
  const DType dtype = c.dtype("dtype", self.dtype());
  const Device device = c.given("device") ? c["device"].device() : self.device();
  if (format != MemoryFormat::preserve) {
    c.output(self.sizes(), strides_in(format, self.sizes()), dtype, device);
  } else {
    c.output(self.sizes(), dense_strides_like(self.sizes(), self.strides()), dtype, device);
  }
}

constexpr Op factory(std::string_view schema, void (*meta)(Call&), std::string_view example) {
  return {.schema = schema,
          .summary = "random numbers",
          .meta = meta,
          .derivatives = not_differentiable,
          .flops = free_of_flops,
          .examples = {example},
          .facts = kRandom};
}

// Large permutations are sorted random keys, small ones made on the host
// (aten/src/ATen/native/cuda/Randperm.cu).
void randperm_cuda(Call& c) {
  const int64_t n = c.integer("n");
  c.allocate(0);
  if (n < 30000) return;
  // Bits that make a collision unlikely: the probability of none is at least 0.9.
  const double count = double(n);
  const double bits = std::ceil(std::log2(count - (6 * count * count + 1) / (std::log(0.9) * 12)));
  const DType key = bits <= 32 ? DType::i32 : DType::i64;
  const int64_t result = element_size(c.result_tensor().dtype());
  const Tensor keys = c.temporary(Sizes{n}, key), sorted = c.temporary(Sizes{n}, key);
  const Tensor range = c.temporary(Sizes{n}, c.result_tensor().dtype());
  c.temporary_bytes(
      cub_bytes<cub_sort_bytes>(c, n, element_size(key), result, std::min<int64_t>(64, int64_t(bits))));
}

constexpr Op permutation(std::string_view schema, void (*meta)(Call&), std::string_view example) {
  Op op = factory(schema, meta, example);
  op.host_code = {{DeviceType::cuda, randperm_cuda}};
  return op;
}

constexpr Op kFactories[] = {
    factory("rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
            sizes_meta, "(2 3)"),
    factory("randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
            "pin_memory=None) -> Tensor",
            sizes_meta, "(2 3)"),
    factory("randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None) -> Tensor",
            sizes_meta, "10 (2 3)"),
    factory("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            sizes_meta, "1 10 (2 3)"),
    factory("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
            like_meta, "f32[2,3]"),
    factory("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
            like_meta, "f32[2,3]"),
    factory("randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
            "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
            like_meta, "f32[2,3] 10"),
    factory("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> "
            "Tensor",
            like_meta, "f32[2,3] 1 10"),
    permutation(
        "randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
        "pin_memory=None) -> Tensor",
        [](Call& c) {
          const Device device = c.given("device") ? c["device"].device() : c.session.device;
          c.output(Sizes{c.integer("n")}, Sizes{1}, c.dtype("dtype", DType::i64), device);
        },
        "5")};

// --- fills: what self was does not matter, so its gradient is 0

Gradients zeros_backward(Backward& b) { return {zeros_like(b.grad())}; }

constexpr Op fill(std::string_view schema, std::string_view node, std::string_view example) {
  return {.schema = schema,
          .summary = "self := random numbers",
          .meta = [](Call& c) { c.result(c.tensor("self")); },
          .derivatives = {{{"self"}, {}, zeros_backward}},
          .flops = free_of_flops,
          .examples = {example},
          .facts = {.node = node, .random = true}};
}

constexpr Op kFills[] = {
    fill("uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
         "UniformBackward0", "f32[2,3]"),
    fill("normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
         "NormalBackward0", "f32[2,3]"),
    fill("exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
         "ExponentialBackward0", "f32[2,3]"),
    fill("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
         "GeometricBackward0", "f32[2,3] 0.5"),
    fill("cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) -> "
         "Tensor(a!)",
         "CauchyBackward0", "f32[2,3]"),
    fill("log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) -> "
         "Tensor(a!)",
         "LogNormalBackward0", "f32[2,3]"),
    fill("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
         "RandomBackward0", "f32[2,3] 0 10"),
    fill("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)", "RandomBackward1",
         "f32[2,3] 10"),
    fill("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)", "RandomBackward2",
         "f32[2,3]"),
    fill("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
         "BernoulliBackward2", "f32[2,3]")};

// --- samples

constexpr Op kBernoulli[] = {
    {.schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
     .summary = "1 with the probabilities self, else 0",
     .meta =
         [](Call& c) {
           const Tensor& self = c.tensor("self");
           c.output(self.sizes(), self.dtype());
         },
     .derivatives = {{{"self"}, {}, zeros_backward}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3]"},
     .facts = kRandom},
    {.schema = "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
     .summary = "1 with probability p, else 0",
     .meta = composite([](Call& c) {
       const Tensor out = call<"empty_like">(c.session, c["self"]);
       c.result(call<"bernoulli_.float">(c.session, out, c["p"]));
     }),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] 0.5"},
     .facts = kRandom},
    {.schema = "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
     .summary = "self := 1 with the probabilities p, else 0",
     .meta = [](Call& c) { c.result(c.tensor("self")); },
     .derivatives = {{{"p"},
                      {},
                      [](Backward& b) -> Gradients {
                        const TensorImpl& p = *b.shape("p");
                        return {call<"zeros">(b.session, p.sizes, p.dtype, Value(), p.device)};
                      }},
                     {{"self"}, {}, zeros_backward}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.node = "BernoulliBackward1", .random = true}}};

Tensor zeros_of_shape(Backward& b, const TensorImpl& shape) {
  return call<"zeros">(b.session, shape.sizes, b.grad().dtype(), Value(), shape.device);
}

Gradients normal_mean_backward(Backward& b) { return {zeros_of_shape(b, *b.shape("mean"))}; }
Gradients normal_std_backward(Backward& b) { return {zeros_of_shape(b, *b.shape("std"))}; }

// native/DistributionTemplates.h, CHECK_NORMAL_TENSOR_STD: by who makes the result and by who fills it (recorded:
// `opinfo/normal/0`, 2.15).
void check_deviations(Call& c) {
  const Tensor& std = c.tensor("std");
  if (std.numel() == 0) return;
  const Tensor smallest = call<"min">(c.session, std);
  const Tensor valid = call<"ge.Scalar">(c.session, smallest, 0);
}

void allocate_between_checks(Call& c) {
  check_deviations(c);
  c.allocate(0);
  check_deviations(c);
}

constexpr Op kNormal[] = {
    factory(
        "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        sizes_meta, "0.0 1.0 (2 3)"),
    {.schema = "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
     .summary = "normally distributed around mean",
     .meta =
         [](Call& c) {
           const Tensor& mean = c.tensor("mean");
           c.output(mean.sizes(), mean.dtype());
         },
     .host_code = {{DeviceType::cuda,
                    [](Call& c) {  // the deviation's sizes are those of a tensor
                      c.allocate(0);
                      const Tensor deviations =
                          c.temporary(c.tensor("mean").sizes(), c.tensor("mean").dtype());
                    }}},
     .derivatives = {{{"mean"}, {}, normal_mean_backward}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3] 1.0"},
     .facts = {.node = "NormalBackward1", .random = true}},
    {.schema = "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .summary = "normally distributed with deviations std",
     .meta =
         [](Call& c) {
           const Tensor& std = c.tensor("std");
           c.output(std.sizes(), std.dtype());
         },
     .host_code = {{DeviceType::cuda,
                    [](Call& c) {  // the mean as a tensor
                      allocate_between_checks(c);
                      const Tensor mean = c.temporary({}, c.tensor("std").dtype());
                    }}},
     .derivatives = {{{"std"}, {}, normal_std_backward}},
     .flops = elementwise_flops<2>,
     .examples = {"0.0 f32[2,3]"},
     .facts = {.node = "NormalBackward2", .random = true}},
    {.schema = "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
     .summary = "normally distributed around mean with deviations std",
     .meta =
         [](Call& c) {
           const Tensor &mean = c.tensor("mean"), &std = c.tensor("std");
           const Tensor* operands[] = {&mean, &std};
           c.output(broadcast_all(c, operands), mean.dtype());
         },
     .host_code = {{DeviceType::cuda, allocate_between_checks}},
     .derivatives = {{{"mean"}, {}, normal_mean_backward}, {{"std"}, {}, normal_std_backward}},
     .flops = elementwise_flops<2>,
     .examples = {"f32[2,3] f32[2,3]"},
     .facts = {.node = "NormalBackward3", .random = true}}};

// --- multinomial (aten/src/ATen/native/Distributions.cpp, cuda/MultinomialKernel.cu)

void multinomial_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (self.dim() < 1 || self.dim() > 2)
    c.error(fmt::format("expects probabilities of one or two dimensions, got {}", describe(self)));
  Sizes sizes = self.sizes();
  sizes.back() = c.integer("num_samples");
  c.output(sizes, DType::i64);
}

// Exponential noise divides the probabilities; the largest quotients are the sample. From 2.12 on both bounds are found
// at once and stay (recorded: `shapes/order/*/multinomial-*`).
template <bool both_at_once>
void sample_without_replacement(Call& c, const Tensor& self, int64_t samples) {
  Session& s = c.session;
  Tensor largest_of_all, smallest_of_all, valid;
  if (both_at_once) {
    {
      const Results both = call_all<"aminmax">(s, self);
      smallest_of_all = both[0];
      largest_of_all = both[1];
    }
    const Tensor positive = call<"ge.Scalar">(s, smallest_of_all, 0);
    const Tensor finite = call<"lt.Scalar">(s, largest_of_all, std::numeric_limits<double>::infinity());
    valid = call<"bitwise_and.Tensor">(s, finite, positive);
  } else {
    const Tensor smallest = call<"min">(s, self);
    const Tensor positive = call<"ge.Scalar">(s, smallest, 0);
    const Tensor largest = call<"max">(s, self);
    const Tensor finite = call<"lt.Scalar">(s, largest, std::numeric_limits<double>::infinity());
    valid = call<"bitwise_and.Tensor">(s, finite, positive);
  }
  Tensor nothing;
  if (self.dim() == 1) {
    const Tensor total = sum(self);
    nothing = eq(total, 0);
  } else {
    const Tensor totals = sum(self, Sizes{1}, false);
    const Tensor empty = eq(totals, 0);
    nothing = call<"any">(s, empty);
  }
  { const Tensor something = call<"bitwise_not">(s, nothing); }
  const Tensor quotients = c.temporary(self.sizes(), self.strides(), self.dtype());
  if (samples == 1) return;
  const Tensor values = c.temporary(c.result_tensor().sizes(), self.dtype());
  topk_temporaries(c, quotients, values, c.result_tensor(), quotients.dim() - 1, true);
}

// Running sums of normalised rows, searched with uniform numbers. From 2.12 on without a copy of the rows as they were
// (recorded: `opinfo/multinomial/4`, 2.15).
template <bool keeps_rows>
void sample_with_replacement(Call& c, const Tensor& self) {
  const Tensor rows = self.dim() == 1 ? unsqueeze(self, 0) : self;
  const Tensor original = keeps_rows ? c.temporary(rows.sizes(), rows.dtype()) : Tensor();
  const Tensor normalised = c.temporary(rows.sizes(), rows.dtype());
  const Tensor running = c.temporary(rows.sizes(), rows.dtype());
  if (rows.numel() == rows.size(1))
    c.temporary_bytes(
        cub_scan_bytes(rows.numel(), element_size(rows.dtype()), cub_is_primitive(rows.dtype())));
}

template <bool both_bounds_at_once>
void multinomial_kernel(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t samples = c.integer("num_samples");
  c.allocate(0);
  if (self.numel() == 0) return;
  if (!c.boolean("replacement") || samples == 1)
    return sample_without_replacement<both_bounds_at_once>(c, self, samples);
  sample_with_replacement<!both_bounds_at_once>(c, self);
}

constexpr Op multinomial(void (*kernel)(Call&)) {
  return {.schema =
              "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
              "generator=None) -> Tensor",
          .summary = "places drawn with the probabilities self",
          .meta = multinomial_meta,
          .host_code = {{DeviceType::cuda, kernel}},
          .derivatives = not_differentiable,
          .flops = input_flops,
          .examples = {"f32[2,5] 3"},
          .facts = kRandom};
}

constexpr Op kRandomRecords[] = {before({2, 12}, multinomial(multinomial_kernel<false>)),
                                 since({2, 12}, multinomial(multinomial_kernel<true>))};

}  // namespace

Tables random_operators() {
  static constexpr Records tables[] = {kFactories, kFills, kBernoulli, kNormal, kRandomRecords};
  return tables;
}

}  // namespace metaprof
