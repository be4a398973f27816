// Special functions: error functions, gamma functions, Bessel functions, polynomials.

#include <cmath>
#include <limits>
#include <numbers>

#include "meta/op/versions.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

using std::numbers::inv_sqrtpi;
using std::numbers::pi;

constexpr Op special_of_one(std::string_view schema, std::string_view summary, Derivatives derivatives) {
  return only_functional(function_of_one(schema, summary, promoted_floating_meta, derivatives, {"f32[2,3]"}));
}

// --- error functions and the normal distribution

constexpr Op kErrorFunctions[] = {
    function_of_one("erf(Tensor self) -> Tensor", "error function", promoted_floating_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) { return 2 * inv_sqrtpi * exp(neg(pow(b("self"), 2))) * b.grad(); }}}),
    function_of_one("erfc(Tensor self) -> Tensor", "1 − erf(self)", promoted_floating_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) { return -2 * inv_sqrtpi * exp(neg(pow(b("self"), 2))) * b.grad(); }}}),
    under_autocast(Autocast::fp32,
                   function_of_one("erfinv(Tensor self) -> Tensor", "inverse of erf", promoted_floating_meta,
                                   {{{"self"},
                                     {"self"},
                                     [](Backward& b) {
                                       return 0.5 * std::sqrt(pi) *
                                              exp(pow(call<"erfinv">(b.session, b("self")), 2)) * b.grad();
                                     }}})),
    special_of_one(
        "special_erfcx(Tensor self) -> Tensor", "e^(self²) · erfc(self)",
        {{{"self"},
          {"self", "result"},
          [](Backward& b) { return (2.0 * b("self") * b("result") - 2 * inv_sqrtpi) * b.grad(); }}}),
    special_of_one("special_entr(Tensor self) -> Tensor", "−self · ln self",
                   {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * neg(1 + log(b("self"))); }}}),
    special_of_one("special_ndtri(Tensor self) -> Tensor", "quantile of the normal distribution",
                   {{{"self"},
                     {"result"},
                     [](Backward& b) {
                       const Tensor square = call<"square">(b.session, b("result"));
                       const Tensor half = square / 2, density = exp(half);
                       return b.grad() * std::sqrt(2 * pi) * density;
                     }}}),
    special_of_one("special_log_ndtr(Tensor self) -> Tensor", "ln of the normal distribution",
                   {{{"self"}, {"self", "result"}, [](Backward& b) {
                       const Tensor square = pow(b("self"), 2);
                       const Tensor half = square / 2;
                       const Tensor exponent = b("result") + half;
                       const Tensor negative = neg(exponent);
                       const Tensor density = exp(negative);
                       return b.grad() / std::sqrt(2 * pi) * density;
                     }}})};

// --- gamma functions

// FunctionsManual.cpp, infinitely_differentiable_logit_backward: while a second derivative is recorded.
Tensor logit_backward(Backward& b) {
  const Tensor& self = b("self");
  if (!b.session.modes.grad) return call<"logit_backward">(b.session, b.grad(), self, b["eps"]);
  const double low = b.given("eps") ? b.real("eps") : 0.0;
  Tensor outside;
  if (b.given("eps")) {
    outside = call<"zeros">(b.session, Sizes{}, self.dtype(), Value(), self.device());
  } else {
    outside = call<"empty.memory_format">(b.session, Sizes{}, self.dtype(), Value(), self.device());
    call<"fill_.Scalar">(b.session, outside, std::numeric_limits<double>::quiet_NaN());
  }
  const Tensor rest = 1.0 - self;
  const Tensor slope = b.grad() / (self * rest);
  const Tensor below = le(self, 1.0 - low);
  const Tensor above = ge(self, low);
  return where(logical_and(above, below), slope, outside);
}

constexpr Op kLogit[] = {
    function_of_one("logit(Tensor self, float? eps=None) -> Tensor", "ln(self / (1 − self))",
                    promoted_floating_meta,
                    {{{"self"}, {"self"}, [](Backward& b) { return logit_backward(b); }}}),
    only_functional(function_of_two(
        "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
        "grad / (self · (1 − self))", promoted_meta,
        {{{"grad_output"}, {}, not_implemented}, {{"self"}, {}, not_implemented}}, {"f32[2,3] f32[2,3]"}))};

// Σ ln Γ(self + (1 − k)/2) over k = 1 … p: one more dimension of size p, reduced again.
Tensor shifted_copies(const Tensor& self, int64_t p) {
  Session& session = session_of(self);
  const double first = -0.5 * double(p) + 0.5;
  const Tensor shifts =
      call<"arange.start_step">(session, first, 0.5, 0.5, self.dtype(), Value(), self.device());
  return shifts + unsqueeze(self, -1);
}

Tensor multivariate_log_gamma(const Tensor& self, int64_t p) {
  const Tensor shifted = shifted_copies(self, p);
  return sum(call<"lgamma_">(session_of(self), shifted), Sizes{-1}, false);
}

Tensor next_order(Backward& b) {
  return b.grad() * call<"polygamma">(b.session, b.integer("n") + 1, b("self"));
}

constexpr Op kGammaFunctions[] = {
    function_of_one(
        "lgamma(Tensor self) -> Tensor", "ln |Γ(self)|", promoted_floating_meta,
        {{{"self"}, {"self"}, [](Backward& b) { return b.grad() * call<"digamma">(b.session, b("self")); }}}),
    function_of_one("digamma(Tensor self) -> Tensor", "slope of ln Γ", promoted_floating_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) { return b.grad() * call<"polygamma">(b.session, 1, b("self")); }}}),
    with_example("1 f32[2,3]",
                 special_of_one("polygamma(int n, Tensor self) -> Tensor", "derivative n of digamma",
                                {{{"self"}, {"self"}, [](Backward& b) { return next_order(b); }}})),
    with_example(
        "f32[2,3] 1",
        writing_self(node_named(
            "PolygammaBackward1",
            special_of_one("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", "self := polygamma(n, self)",
                           {{{"self"}, {"self"}, [](Backward& b) { return next_order(b); }}})))),
    composite_of("special_polygamma(int n, Tensor self) -> Tensor", "derivative n of digamma",
                 [](Call& c) { c.result(call<"polygamma">(c.session, c["n"], c.tensor("self"))); },
                 {"1 f32[2,3]"}),
    on_cuda(
        [](Call& c) { c.adopt(0, multivariate_log_gamma(c.tensor("self"), c.integer("p"))); }, function_of_one(
                                                                                                   "mvlgamma("
                                                                                                   "Tensor "
                                                                                                   "self, "
                                                                                                   "int p) "
                                                                                                   "-> "
                                                                                                   "Tensor",
                                                                                                   "ln of "
                                                                                                   "the "
                                                                                                   "multivari"
                                                                                                   "ate Γ",
                                                                                                   promoted_floating_meta,
                                                                                                   {{{"self"},
                                                                                                     {"self"},
                                                                                                     [](Backward&
                                                                                                            b) {
                                                                                                       const Tensor shifted = shifted_copies(
                                                                                                           b("self"),
                                                                                                           b.integer(
                                                                                                               "p"));
                                                                                                       const Tensor slope = sum(
                                                                                                           call<
                                                                                                               "digamma_">(
                                                                                                               b.session,
                                                                                                               shifted),
                                                                                                           Sizes{
                                                                                                               -1},
                                                                                                           false);
                                                                                                       return b.grad() *
                                                                                                              slope;
                                                                                                     }}},
                                                                                                   {"f32[2,3]"
                                                                                                    " 2"}))};

// ∂/∂other of the regularised incomplete gamma functions.
Tensor incomplete_gamma_slope(Backward& b) {
  const Tensor gamma = call<"lgamma">(b.session, b("self"));
  const Tensor logarithm = log(b("other"));
  return exp((b("self") - 1) * logarithm - b("other") - gamma);
}

constexpr Op kIncompleteGamma[] = {
    function_of_two("igamma(Tensor self, Tensor other) -> Tensor", "lower incomplete Γ",
                    promoted_floating_meta,
                    {{{"other"},
                      {"self", "other"},
                      [](Backward& b) {
                        const Tensor slope = incomplete_gamma_slope(b);
                        return b.grad() * slope;
                      }},
                     {{"self"}, {}, not_implemented}}),
    function_of_two("igammac(Tensor self, Tensor other) -> Tensor", "upper incomplete Γ",
                    promoted_floating_meta,
                    {{{"other"},
                      {"self", "other"},
                      [](Backward& b) {
                        const Tensor slope = incomplete_gamma_slope(b);
                        return neg(b.grad()) * slope;
                      }},
                     {{"self"}, {}, not_implemented}}),
    only_functional(function_of_two(
        "special_zeta(Tensor self, Tensor other) -> Tensor", "Hurwitz ζ", promoted_floating_meta,
        {{{"other"},
          {"self", "other"},
          [](Backward& b) {
            const Tensor zeta = call<"special_zeta">(b.session, b("self") + 1.0, b("other"));
            return b.grad() * neg(b("self")) * zeta;
          }},
         {{"self"}, {}, not_implemented}}))};

// --- Bessel functions: the slope of I₁ is ½ at 0, where the formula divides by 0 (FunctionsManual.cpp,
// i1_backward, i1e_backward).

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 2.220446049250313e-16;
    case DType::f16: return 0.0009765625;
    case DType::bf16: return 0.0078125;
    default: return 1.1920928955078125e-07;
  }
}

template <class Slope>
Tensor away_from_zero(Backward& b, Slope slope) {
  const double epsilon = epsilon_of(b.dtype("self"));
  const Tensor away = gt(abs(b("self")), epsilon);
  const Tensor safe = where(away, b("self"), scalar_like(b("self"), epsilon));
  const Tensor gradient = slope(safe);
  const Tensor half = scalar_like(b("self"), 0.5);
  return b.grad() * where(away, gradient, half);
}

constexpr Op bessel_function(std::string_view schema) {
  return special_of_one(schema, "a Bessel function", not_differentiable);
}

// The slope of a function of order 0 is one of order 1, of the other sign except I₁; that of order 1 follows from both
// (tools/autograd/derivatives.yaml and FunctionsManual.cpp, bessel_j1_backward, bessel_y1_backward, 2.15).

template <FixedString first, bool negative>
Tensor order_zero_gradient(Backward& b) {
  const Tensor slope = call<first>(b.session, b("self"));
  if (!negative) return b.grad() * slope;
  const Tensor falling = neg(slope);
  return b.grad() * falling;
}

template <FixedString zeroth>
Tensor order_one_gradient_away_from_zero(Backward& b) {
  return away_from_zero(b, [&](const Tensor& safe) {
    const Tensor inverse = call<"reciprocal">(b.session, safe);
    const Tensor product = b("result") * inverse;
    return call<zeroth>(b.session, safe) - product;
  });
}

Tensor bessel_y1_gradient(Backward& b) {
  const auto slope = [&] {
    const Tensor inverse = call<"reciprocal">(b.session, b("self"));
    const Tensor product = b("result") * inverse;
    return call<"special_bessel_y0">(b.session, b("self")) - product;
  };
  const Tensor finite = slope();
  const Tensor infinite = scalar_like(b("self"), std::numeric_limits<double>::infinity());
  const Tensor zero = eq(b("self"), 0.0);
  return b.grad() * where(zero, infinite, finite);
}

Tensor modified_bessel_k1_gradient(Backward& b) {
  const Tensor inverse = call<"reciprocal">(b.session, b("self"));
  const Tensor product = b("result") * inverse;
  const Tensor zeroth = call<"special_modified_bessel_k0">(b.session, b("self"));
  const Tensor sum = zeroth + product;
  const Tensor negative = neg(sum);
  return b.grad() * negative;
}

constexpr Op order_zero(std::string_view schema, Formula gradient) {
  return since({2, 15}, special_of_one(schema, "a Bessel function", {{{"self"}, {"self"}, gradient}}));
}
constexpr Op order_one(std::string_view schema, Formula gradient) {
  return since({2, 15},
               special_of_one(schema, "a Bessel function", {{{"self"}, {"self", "result"}, gradient}}));
}

constexpr Op kBesselGradients[] = {
    order_zero("special_bessel_j0(Tensor self) -> Tensor",
               [](Backward& b) { return order_zero_gradient<"special_bessel_j1", true>(b); }),
    order_zero("special_bessel_y0(Tensor self) -> Tensor",
               [](Backward& b) { return order_zero_gradient<"special_bessel_y1", true>(b); }),
    order_zero("special_modified_bessel_i0(Tensor self) -> Tensor",
               [](Backward& b) { return order_zero_gradient<"special_modified_bessel_i1", false>(b); }),
    order_zero("special_modified_bessel_k0(Tensor self) -> Tensor",
               [](Backward& b) { return order_zero_gradient<"special_modified_bessel_k1", true>(b); }),
    order_one("special_bessel_j1(Tensor self) -> Tensor",
              [](Backward& b) { return order_one_gradient_away_from_zero<"special_bessel_j0">(b); }),
    order_one("special_bessel_y1(Tensor self) -> Tensor", [](Backward& b) { return bessel_y1_gradient(b); }),
    order_one("special_modified_bessel_i1(Tensor self) -> Tensor",
              [](Backward& b) { return order_one_gradient_away_from_zero<"i0">(b); }),
    order_one("special_modified_bessel_k1(Tensor self) -> Tensor",
              [](Backward& b) { return modified_bessel_k1_gradient(b); })};

constexpr Op kBesselFunctions[] = {
    function_of_one("i0(Tensor self) -> Tensor", "modified Bessel I₀", promoted_floating_meta,
                    {{{"self"},
                      {"self"},
                      [](Backward& b) { return b.grad() * call<"special_i1">(b.session, b("self")); }}}),
    special_of_one("special_i0e(Tensor self) -> Tensor", "e^−|self| · I₀(self)",
                   {{{"self"},
                     {"self", "result"},
                     [](Backward& b) {
                       const Tensor sign = sgn(b("self"));
                       const Tensor product = sign * b("result");
                       return b.grad() * (call<"special_i1e">(b.session, b("self")) - product);
                     }}}),
    special_of_one("special_i1(Tensor self) -> Tensor", "modified Bessel I₁",
                   {{{"self"},
                     {"self", "result"},
                     [](Backward& b) {
                       return away_from_zero(b, [&](const Tensor& safe) {
                         const Tensor inverse = call<"reciprocal">(b.session, safe);
                         const Tensor product = b("result") * inverse;
                         return call<"i0">(b.session, safe) - product;
                       });
                     }}}),
    special_of_one("special_i1e(Tensor self) -> Tensor", "e^−|self| · I₁(self)",
                   {{{"self"},
                     {"self", "result"},
                     [](Backward& b) {
                       return away_from_zero(b, [&](const Tensor& safe) {
                         const Tensor inverse = call<"reciprocal">(b.session, safe);
                         const Tensor sign = sgn(safe);
                         const Tensor added = sign + inverse;
                         const Tensor product = b("result") * added;
                         return call<"special_i0e">(b.session, safe) - product;
                       });
                     }}}),
    bessel_function("special_airy_ai(Tensor x) -> Tensor"),
    before({2, 15}, bessel_function("special_bessel_j0(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_bessel_j1(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_bessel_y0(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_bessel_y1(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_modified_bessel_i0(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_modified_bessel_i1(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_modified_bessel_k0(Tensor self) -> Tensor")),
    before({2, 15}, bessel_function("special_modified_bessel_k1(Tensor self) -> Tensor")),
    bessel_function("special_scaled_modified_bessel_k0(Tensor x) -> Tensor"),
    bessel_function("special_scaled_modified_bessel_k1(Tensor x) -> Tensor"),
    bessel_function("special_spherical_bessel_j0(Tensor x) -> Tensor")};

// --- orthogonal polynomials P_n(x)

constexpr Op polynomial(std::string_view schema) {
  return only_functional(
      function_of_two(schema, "polynomial n at x", promoted_floating_meta, not_differentiable));
}

constexpr Op kPolynomials[] = {
    polynomial("special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor"),
    polynomial("special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor")};

constexpr Op kSpecial[] = {
    // aten/src/ATen/native/UnaryOps.cpp, special_ndtr.
    composite_of("special_ndtr(Tensor self) -> Tensor", "the normal distribution up to self",
                 [](Call& c) {
                   const Tensor scaled = c.tensor("self") * M_SQRT1_2;
                   const Tensor error = call<"erf">(c.session, scaled), more = error + 1;
                   c.result(more * 0.5);
                 },
                 {"f32[2,3]"})};

}  // namespace

Tables special_operators() {
  static constexpr Records tables[] = {kErrorFunctions,  kLogit,           kGammaFunctions, kIncompleteGamma,
                                       kBesselFunctions, kBesselGradients, kPolynomials,    kSpecial};
  return tables;
}

}  // namespace metaprof
