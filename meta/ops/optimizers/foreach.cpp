// Operators over lists of tensors ("foreach"), which optimizers are made of: one result per tensor, as the
// operator of the same name gives for each of them. The fused kernels and the loop that they fall back to ask
// for the same memory (recorded: foreach/f32/add with mixed dtypes).

#include <fmt/format.h>

#include "meta/ops/optimizers/family.h"
#include "meta/ops/rules/iterator.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

constexpr std::string_view kEqualLists = "lists of one length";

size_t list_length(const Call& c) {
  return (c.arguments[0].is_tensors() ? c.arguments[0] : c.arguments[1]).tensors().size();
}

// The numbers of a call: one for all tensors, or one for each.
Value number_at(const Value& value, size_t i) {
  if (value.kind() == Value::Kind::reals) return Value(value.reals()[i]);
  if (value.kind() == Value::Kind::integers) return Value(value.integers()[i]);
  return value;
}

bool has_numbers(const Argument& argument) { return argument.type == Type::scalar; }

struct Element {
  SmallVector<const Tensor*, 4> operands;
  DType dtype;
};

// What takes part in result i: an element of each list, a tensor that is given for all of them, and a number.
Element element(const Call& c, size_t i) {
  Element out;
  std::vector<Tensor> promoted;
  Value number;
  for (size_t a = 0; a < c.arguments.size(); ++a) {
    const Value& value = c.arguments[a];
    if (value.is_tensors()) {
      out.operands.push_back(&value.tensors()[i]);
      promoted.push_back(value.tensors()[i]);
    } else if (value.is_tensor() && value.tensor().dim() == 0) {
      out.operands.push_back(&value.tensor());
      promoted.push_back(value.tensor());
    } else if (has_numbers(c.op.schema.arguments[a]) && !c.op.schema.arguments[a].keyword_only) {
      number = number_at(value, i);
    }
  }
  out.dtype = promoted.size() == 1 ? result_type(promoted[0], number) : result_type(promoted);
  return out;
}

void results(Call& c, DType (*becomes)(DType)) {
  const size_t length = list_length(c);
  if (c.op.in_place) return c.result(c.arguments[0]);
  std::vector<Tensor> list;
  list.reserve(length);
  for (size_t i = 0; i < length; ++i) {
    const Element e = element(c, i);
    elementwise(c, std::span<const Tensor* const>(e.operands.begin(), e.operands.size()), becomes(e.dtype));
    list.push_back(c.results.back().take_tensor());
    c.results.pop_back();
  }
  c.view_list(std::move(list));
}

void same_dtype(Call& c) {
  results(c, [](DType dtype) { return dtype; });
}
void floating(Call& c) { results(c, to_floating); }

int64_t elements(const Call& c) {
  int64_t count = 0;
  for (const Value& value : c.arguments) {
    if (!value.is_tensors()) continue;
    for (const Tensor& tensor : value.tensors()) count += tensor.numel();
    break;
  }
  return count;
}

template <int per_element>
FlopCount list_flops(const Call& c) {
  return {.own = per_element * elements(c)};
}

// One operator of the family; `_` exists too.
constexpr Op member(std::string_view schema, std::string_view summary, void (*meta)(Call&), FlopsRule flops,
                    std::string_view example) {
  return {.schema = schema,
          .summary = summary,
          .meta = meta,
          .derivatives = not_differentiable,
          .flops = flops,
          .examples = {example},
          .facts = {.takes = kEqualLists, .in_place_too = true}};
}

constexpr Op arithmetic(std::string_view schema, std::string_view summary, std::string_view example,
                        void (*meta)(Call&) = same_dtype, FlopsRule flops = list_flops<1>) {
  return member(schema, summary, meta, flops, example);
}

constexpr Op kArithmetic[] = {
    arithmetic("_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "self + scalar",
               "(f32[2,3] f32[4]) 2"),
    arithmetic("_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
               "self + alpha·other", "(f32[2,3] f32[4]) (f32[2,3] f32[4])"),
    arithmetic("_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "self + scalars",
               "(f32[2,3] f32[4]) (1.5 2.5)"),
    arithmetic("_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]",
               "self + alpha·other", "(f32[2,3] f32[4]) f32[]"),
    arithmetic("_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "self − scalar",
               "(f32[2,3]) 2"),
    arithmetic("_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
               "self − alpha·other", "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "self − scalars",
               "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "self · scalar",
               "(f32[2,3]) 2.0"),
    arithmetic("_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]", "self · other",
               "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "self · scalars",
               "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]", "self · other",
               "(f32[2,3] f32[4]) f32[]"),
    arithmetic("_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "self / scalar",
               "(f32[2,3]) 2", floating),
    arithmetic("_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]", "self / other",
               "(f32[2,3]) (f32[2,3])", floating),
    arithmetic("_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", "self / scalars",
               "(f32[2,3]) (1.5)", floating),
    arithmetic("_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]", "self / other",
               "(f32[2,3]) f32[]", floating),
    arithmetic("_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "min(self, scalar)",
               "(f32[2,3]) 2"),
    arithmetic("_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]", "min(self, other)",
               "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
               "min(self, scalars)", "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "max(self, scalar)",
               "(f32[2,3]) 2"),
    arithmetic("_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]", "max(self, other)",
               "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
               "max(self, scalars)", "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "max(self, scalar)",
               "(f32[2,3]) 2"),
    arithmetic("_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]", "max(self, other)",
               "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
               "max(self, scalars)", "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", "min(self, scalar)",
               "(f32[2,3]) 2"),
    arithmetic("_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]", "min(self, other)",
               "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
               "min(self, scalars)", "(f32[2,3]) (1.5)"),
    arithmetic("_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]",
               "self to the power of a number", "(f32[2,3]) 2"),
    arithmetic("_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]",
               "self to the power of exponent", "(f32[2,3]) (f32[2,3])"),
    arithmetic("_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]",
               "self to the power of the numbers", "(f32[2,3]) (2.0)"),
    arithmetic("_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) "
               "-> Tensor[]",
               "self + value · tensor1 / tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) 0.5", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] "
               "scalars) -> Tensor[]",
               "self + scalars · tensor1 / tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) (0.5)", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) "
               "-> Tensor[]",
               "self + scalars · tensor1 / tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) f32[1]", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) "
               "-> Tensor[]",
               "self + value · tensor1 · tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) 0.5", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] "
               "scalars) -> Tensor[]",
               "self + scalars · tensor1 · tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) (0.5)", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) "
               "-> Tensor[]",
               "self + scalars · tensor1 · tensor2", "(f32[2,3]) (f32[2,3]) (f32[2,3]) f32[1]", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]",
               "self + weights · (tensors1 − self)", "(f32[2,3]) (f32[2,3]) (f32[2,3])", same_dtype,
               list_flops<3>),
    arithmetic("_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
               "self + weight · (tensors1 − self)", "(f32[2,3]) (f32[2,3]) 0.5", same_dtype, list_flops<3>),
    arithmetic("_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]",
               "self + weight · (tensors1 − self)", "(f32[2,3]) (f32[2,3]) (0.5)", same_dtype,
               list_flops<3>)};

constexpr Op unary(std::string_view schema, std::string_view summary, void (*meta)(Call&)) {
  return member(schema, summary, meta, list_flops<1>, "(f32[2,3] f32[4])");
}

constexpr Op kUnary[] = {
    unary("_foreach_abs(Tensor[] self) -> Tensor[]", "|self|", same_dtype),
    unary("_foreach_acos(Tensor[] self) -> Tensor[]", "arc cosine", floating),
    unary("_foreach_asin(Tensor[] self) -> Tensor[]", "arc sine", floating),
    unary("_foreach_atan(Tensor[] self) -> Tensor[]", "arc tangent", floating),
    unary("_foreach_ceil(Tensor[] self) -> Tensor[]", "rounded up", same_dtype),
    unary("_foreach_cos(Tensor[] self) -> Tensor[]", "cosine", floating),
    unary("_foreach_cosh(Tensor[] self) -> Tensor[]", "hyperbolic cosine", floating),
    unary("_foreach_erf(Tensor[] self) -> Tensor[]", "error function", floating),
    unary("_foreach_erfc(Tensor[] self) -> Tensor[]", "1 − error function", floating),
    unary("_foreach_exp(Tensor[] self) -> Tensor[]", "e to the power of self", floating),
    unary("_foreach_expm1(Tensor[] self) -> Tensor[]", "e to the power of self, minus 1", floating),
    unary("_foreach_floor(Tensor[] self) -> Tensor[]", "rounded down", same_dtype),
    unary("_foreach_frac(Tensor[] self) -> Tensor[]", "the part behind the point", same_dtype),
    unary("_foreach_lgamma(Tensor[] self) -> Tensor[]", "log |Γ(self)|", floating),
    unary("_foreach_log(Tensor[] self) -> Tensor[]", "natural logarithm", floating),
    unary("_foreach_log10(Tensor[] self) -> Tensor[]", "logarithm to base 10", floating),
    unary("_foreach_log1p(Tensor[] self) -> Tensor[]", "log(1 + self)", floating),
    unary("_foreach_log2(Tensor[] self) -> Tensor[]", "logarithm to base 2", floating),
    unary("_foreach_neg(Tensor[] self) -> Tensor[]", "−self", same_dtype),
    unary("_foreach_reciprocal(Tensor[] self) -> Tensor[]", "1 / self", floating),
    unary("_foreach_round(Tensor[] self) -> Tensor[]", "rounded to the nearest", same_dtype),
    unary("_foreach_rsqrt(Tensor[] self) -> Tensor[]", "1 / √self", floating),
    unary("_foreach_sigmoid(Tensor[] self) -> Tensor[]", "1 / (1 + e to the power of −self)", floating),
    unary("_foreach_sign(Tensor[] self) -> Tensor[]", "−1, 0 or 1", same_dtype),
    unary("_foreach_sin(Tensor[] self) -> Tensor[]", "sine", floating),
    unary("_foreach_sinh(Tensor[] self) -> Tensor[]", "hyperbolic sine", floating),
    unary("_foreach_sqrt(Tensor[] self) -> Tensor[]", "√self", floating),
    unary("_foreach_tan(Tensor[] self) -> Tensor[]", "tangent", floating),
    unary("_foreach_tanh(Tensor[] self) -> Tensor[]", "hyperbolic tangent", floating),
    unary("_foreach_trunc(Tensor[] self) -> Tensor[]", "rounded towards 0", same_dtype)};

// --- norms

bool on_one_path(const Value::Tensors& tensors) {
  for (const Tensor& t : tensors)
    if (t.dtype() != tensors[0].dtype() || !is_floating(t.dtype()) || !t->dense) return false;
  return true;
}

void norm_meta(Call& c) {
  std::vector<Tensor> norms;
  for (const Tensor& tensor : c.tensors("self")) {
    c.output({}, c.dtype("dtype", to_floating(tensor.dtype())));
    norms.push_back(c.results.back().take_tensor());
    c.results.pop_back();
  }
  c.view_list(std::move(norms));
}

// One kernel over all tensors writes a partial norm per tensor and chunk of 65 536 elements, a second one the
// norms (aten/src/ATen/native/cuda/ForeachReduceOp.cu). Otherwise one norm after the other.
void norm_cuda(Call& c) {
  constexpr int64_t chunk = 65536;
  const Value::Tensors& tensors = c.tensors("self");
  Tensor begins, partial;
  if (on_one_path(tensors)) {
    const bool packed = c.platform().framework.packs_partial_norms;
    const auto count = static_cast<int64_t>(tensors.size());
    int64_t most_chunks = 0, all_chunks = 0;
    for (const Tensor& t : tensors) {
      const int64_t chunks = (t.numel() + chunk - 1) / chunk;
      most_chunks = std::max(most_chunks, chunks);
      all_chunks += chunks;
    }
    if (packed) begins = c.temporary(Sizes{count + 1}, DType::i64);
    const DType dtype = c.results[0].tensors()[0].dtype();
    partial = c.temporary(Sizes{packed ? all_chunks : count * most_chunks}, accumulate_type(dtype));
  }
  c.allocate_all();
}

constexpr Op kWholeLists[] = {
    {.schema = "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
     .summary = "the norm of each tensor",
     .meta = norm_meta,
     .host_code = {{DeviceType::cuda, norm_cuda}},
     .derivatives = not_differentiable,
     .flops = list_flops<2>,
     .examples = {"(f32[2,3] f32[4])"},
     .facts = {.takes = kEqualLists}},
    {.schema = "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
     .summary = "self to the power of each tensor",
     .meta = same_dtype,
     .derivatives = not_differentiable,
     .flops = list_flops<1>,
     .examples = {"2.0 (f32[2,3] f32[4])"},
     .facts = {.takes = kEqualLists}},
    {.schema = "_foreach_zero_(Tensor(a!)[] self) -> ()",
     .summary = "self := 0",
     .meta = [](Call&) {},
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(f32[2,3] f32[4])"},
     .facts = {.takes = kEqualLists}},
    {.schema = "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()",
     .summary = "self := src",
     .meta = [](Call&) {},
     .derivatives = not_differentiable,
     .flops = free_of_flops,
     .examples = {"(f32[2,3] f32[4]) (f32[2,3] f32[4])"},
     .facts = {.takes = kEqualLists}}};

}  // namespace

Tables foreach_operators() {
  static constexpr Records tables[] = {kArithmetic, kUnary, kWholeLists};
  return tables;
}

}  // namespace metaprof
