// Operators that are other ones under a second name (the framework's alias operators, all composite).

#include <string>

#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

template <FixedString name>
void same_as(Call& c) {
  const Operator& op = c.session.registry.at_slot(slot_of<name, SlotUse::all_results>);
  SmallVector<Value, 4> given(c.arguments.begin(), c.arguments.end());
  Results results = invoke(c.session, op, std::span(given));
  for (Value& result : results.list()) c.result(std::move(result));
}

/// `in_place`: what `name_` is.
template <FixedString functional, FixedString in_place>
void same_as_either(Call& c) {
  c.op.in_place ? same_as<in_place>(c) : same_as<functional>(c);
}

template <FixedString name>
constexpr auto kSameAs = [] {
  constexpr std::string_view words = "the same as ", text = kept_name<name>.view();
  std::array<char, words.size() + text.size()> summary = {};
  std::copy(text.begin(), text.end(), std::copy(words.begin(), words.end(), summary.begin()));
  return summary;
}();

template <FixedString functional>
constexpr Op alias(std::string_view schema, std::string_view example) {
  const std::string_view summary(kSameAs<functional>.data(), kSameAs<functional>.size());
  return composite_of(schema, summary, same_as<functional>, {example});
}

template <FixedString functional, FixedString in_place>
constexpr Op alias(std::string_view schema, std::string_view example) {
  Op op = alias<functional>(schema, example);
  op.meta = composite(same_as_either<functional, in_place>);
  op.facts.in_place_too = true;
  return op;
}

constexpr Op kArithmeticAliases[] = {
    alias<"div.Tensor", "div_.Tensor">("true_divide.Tensor(Tensor self, Tensor other) -> Tensor",
                                       "f32[2,3] f32[3]"),
    alias<"div.Tensor", "div_.Tensor">("divide.Tensor(Tensor self, Tensor other) -> Tensor",
                                       "f32[2,3] f32[3]"),
    alias<"sub.Tensor", "sub_.Tensor">(
        "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "f32[2,3] f32[3]"),
    alias<"abs", "abs_">("absolute(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"div.Scalar", "div_.Scalar">("divide.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"div.Scalar_mode", "div_.Scalar_mode">(
        "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
        "f32[2,3] 2 \"floor\""),
    alias<"div.Tensor_mode", "div_.Tensor_mode">(
        "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        "f32[2,3] f32[3] \"floor\""),
    alias<"mul.Tensor", "mul_.Tensor">("multiply.Tensor(Tensor self, Tensor other) -> Tensor",
                                       "f32[2,3] f32[3]"),
    alias<"mul.Scalar", "mul_.Scalar">("multiply.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"neg", "neg_">("negative(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"sub.Scalar", "sub_.Scalar">("subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                                       "f32[2,3] 2"),
    alias<"div.Scalar", "div_.Scalar">("true_divide.Scalar(Tensor self, Scalar other) -> Tensor",
                                       "f32[2,3] 2"),
    alias<"floor_divide_">("floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                           "i64[2,3] i64[3]")};

constexpr Op kComparisonAliases[] = {
    alias<"gt.Scalar", "gt_.Scalar">("greater.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"gt.Tensor", "gt_.Tensor">("greater.Tensor(Tensor self, Tensor other) -> Tensor",
                                     "f32[2,3] f32[3]"),
    alias<"ge.Scalar", "ge_.Scalar">("greater_equal.Scalar(Tensor self, Scalar other) -> Tensor",
                                     "f32[2,3] 2"),
    alias<"ge.Tensor", "ge_.Tensor">("greater_equal.Tensor(Tensor self, Tensor other) -> Tensor",
                                     "f32[2,3] f32[3]"),
    alias<"lt.Scalar", "lt_.Scalar">("less.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"lt.Tensor", "lt_.Tensor">("less.Tensor(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3]"),
    alias<"le.Scalar", "le_.Scalar">("less_equal.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"le.Tensor", "le_.Tensor">("less_equal.Tensor(Tensor self, Tensor other) -> Tensor",
                                     "f32[2,3] f32[3]"),
    alias<"ne.Scalar", "ne_.Scalar">("not_equal.Scalar(Tensor self, Scalar other) -> Tensor", "f32[2,3] 2"),
    alias<"ne.Tensor", "ne_.Tensor">("not_equal.Tensor(Tensor self, Tensor other) -> Tensor",
                                     "f32[2,3] f32[3]")};

constexpr Op kFunctionAliases[] = {
    alias<"acos", "acos_">("arccos(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"acosh", "acosh_">("arccosh(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"asin", "asin_">("arcsin(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"asinh", "asinh_">("arcsinh(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"atan", "atan_">("arctan(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"atanh", "atanh_">("arctanh(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"atan2", "atan2_">("arctan2(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3]"),
    alias<"clamp", "clamp_">("clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                             "f32[2,3] 0 1"),
    alias<"clamp.Tensor", "clamp_.Tensor">(
        "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", "f32[2,3] f32[3] f32[3]"),
    alias<"trunc", "trunc_">("fix(Tensor self) -> Tensor", "f32[2,3]")};

constexpr Op kSpecialAliases[] = {
    alias<"digamma">("special_digamma(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"erf">("special_erf(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"erfc">("special_erfc(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"erfinv">("special_erfinv(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"exp2">("special_exp2(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"sigmoid">("special_expit(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"expm1">("special_expm1(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"igamma">("special_gammainc(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3]"),
    alias<"igammac">("special_gammaincc(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3]"),
    alias<"lgamma">("special_gammaln(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"i0">("special_i0(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"log1p">("special_log1p(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"log_softmax.int">("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
                             "f32[2,3] 1"),
    alias<"logit">("special_logit(Tensor self, float? eps=None) -> Tensor", "f32[2,3]"),
    alias<"logsumexp">("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                       "f32[2,3] (1)"),
    alias<"mvlgamma">("special_multigammaln(Tensor self, int p) -> Tensor", "f32[4] 2"),
    alias<"digamma">("special_psi(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"round.decimals">("special_round(Tensor self, *, int decimals=0) -> Tensor", "f32[2,3] 1"),
    alias<"sinc">("special_sinc(Tensor self) -> Tensor", "f32[2,3]"),
    alias<"softmax.int">("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                         "f32[2,3] 1"),
    alias<"xlogy.Tensor">("special_xlogy(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3]"),
    alias<"xlogy.Scalar_Other">("special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor",
                                "f32[2,3] 2"),
    alias<"xlogy.Scalar_Self">("special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor",
                               "2 f32[2,3]")};

constexpr Op kWholeTensors[] = {
    alias<"cat">("concat(Tensor[] tensors, int dim=0) -> Tensor", "(f32[2,3] f32[2,3])"),
    alias<"cat">("concatenate(Tensor[] tensors, int dim=0) -> Tensor", "(f32[2,3] f32[2,3])"),
    alias<"linalg_det">("det(Tensor self) -> Tensor", "f32[3,3]"),
    alias<"linalg_inv">("inverse(Tensor self) -> Tensor", "f32[3,3]"),
    alias<"matmul">("linalg_matmul(Tensor self, Tensor other) -> Tensor", "f32[2,3] f32[3,4]"),
    alias<"vstack">("row_stack(Tensor[] tensors) -> Tensor", "(f32[2,3] f32[2,3])"),
    alias<"split_with_sizes">(
        "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]", "f32[5,3] (2 3)"),
    alias<"linalg_matrix_power">("matrix_power(Tensor self, int n) -> Tensor", "f32[3,3] 2"),
    alias<"linalg_slogdet">("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", "f32[3,3]")};

}  // namespace

Tables alias_operators() {
  static constexpr Records tables[] = {kArithmeticAliases, kComparisonAliases, kFunctionAliases,
                                       kSpecialAliases, kWholeTensors};
  return tables;
}

}  // namespace metaprof
