// Derivatives of functions of one tensor, element by element.

#include <numbers>

#include "step/compiled/autodiff/formula.h"

namespace metaprof::ir {
namespace {

Term apply(std::string_view function, Term term) { return term.formula->call(function, {term}); }

void give(Formula& f, Term gradient) { f.give("self", gradient); }

void negative(Formula& f) { give(f, -f.gradient()); }
void absolute(Formula& f) { give(f, f.gradient() * apply("aten::sign", f.self())); }
void reciprocal(Formula& f) { give(f, -f.gradient() * f.result() * f.result()); }
void square_root(Formula& f) { give(f, f.gradient() / (2 * f.result())); }
void reciprocal_square_root(Formula& f) { give(f, -f.gradient() * f.result() * f.result() * f.result() / 2); }

void exponential(Formula& f) { give(f, f.gradient() * f.result()); }
void exponential_less_one(Formula& f) { give(f, f.gradient() * (f.result() + 1)); }
void logarithm(Formula& f) { give(f, f.gradient() / f.self()); }
void logarithm_10(Formula& f) { give(f, f.gradient() / (f.self() * std::numbers::ln10)); }
void logarithm_2(Formula& f) { give(f, f.gradient() / (f.self() * std::numbers::ln2)); }
void logarithm_of_more(Formula& f) { give(f, f.gradient() / (f.self() + 1)); }

void sine(Formula& f) { give(f, f.gradient() * apply("aten::cos", f.self())); }
void cosine(Formula& f) { give(f, f.gradient() * -apply("aten::sin", f.self())); }
void tangent(Formula& f) { give(f, f.gradient() * (f.result() * f.result() + 1.0)); }
void hyperbolic_sine(Formula& f) { give(f, f.gradient() * apply("aten::cosh", f.self())); }
void hyperbolic_cosine(Formula& f) { give(f, f.gradient() * apply("aten::sinh", f.self())); }
void hyperbolic_tangent(Formula& f) { give(f, f.gradient() * (1 - f.result() * f.result())); }

// 1 / sqrt(1 - x²)
Term slope_of_arc(Formula& f) { return apply("aten::rsqrt", -f.self() * f.self() + 1); }
void arc_sine(Formula& f) { give(f, f.gradient() * slope_of_arc(f)); }
void arc_cosine(Formula& f) { give(f, f.gradient() * -slope_of_arc(f)); }
void arc_tangent(Formula& f) { give(f, f.gradient() / (f.self() * f.self() + 1)); }

void error_function(Formula& f) {
  give(f, 2 * std::numbers::inv_sqrtpi * apply("aten::exp", -f.self() * f.self()) * f.gradient());
}
void complementary_error_function(Formula& f) {
  give(f, -2 * std::numbers::inv_sqrtpi * apply("aten::exp", -f.self() * f.self()) * f.gradient());
}

// Rounding is flat.
void flat(Formula& f) { give(f, apply("aten::zeros_like", f.gradient())); }
void fraction(Formula& f) { give(f, f.gradient()); }

constexpr FormulaRow kFunctions[] = {
    {"aten::neg", negative},
    {"aten::abs", absolute},
    {"aten::reciprocal", reciprocal},
    {"aten::sqrt", square_root},
    {"aten::rsqrt", reciprocal_square_root},
    {"aten::exp", exponential},
    {"aten::expm1", exponential_less_one},
    {"aten::log", logarithm},
    {"aten::log10", logarithm_10},
    {"aten::log1p", logarithm_of_more},
    {"aten::log2", logarithm_2},
    {"aten::sin", sine},
    {"aten::cos", cosine},
    {"aten::tan", tangent},
    {"aten::sinh", hyperbolic_sine},
    {"aten::cosh", hyperbolic_cosine},
    {"aten::tanh", hyperbolic_tangent},
    {"aten::asin", arc_sine},
    {"aten::acos", arc_cosine},
    {"aten::atan", arc_tangent},
    {"aten::erf", error_function},
    {"aten::erfc", complementary_error_function},
    {"aten::ceil", flat},
    {"aten::floor", flat},
    {"aten::round", flat},
    {"aten::trunc", flat},
    {"aten::frac", fraction},
};

}  // namespace

std::span<const FormulaRow> function_formulas() { return kFunctions; }

}  // namespace metaprof::ir
