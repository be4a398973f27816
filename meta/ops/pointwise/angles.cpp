// Signs, distances and angles of two numbers; complex numbers.

#include "meta/op/versions.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/elementwise.h"

namespace metaprof {
namespace {

// FunctionsManual.cpp, atan2_backward: both gradients share 1 / (self² + other²), which is 0 at the origin.
Tensor sum_of_squares(Backward& b) {
  const Tensor other_square = b("other") * b("other");
  const Tensor self_square = b("self") * b("self");
  return self_square + other_square;
}

Gradients atan2_backward(Backward& b) {
  const Tensor square = sum_of_squares(b);
  Tensor inverse = call<"reciprocal">(b.session, square);
  if (b.session.modes.grad) {  // a second derivative reads the reciprocal
    inverse = masked_fill(inverse, eq(square, 0), 0);
  } else {
    masked_fill_(inverse, eq(square, 0), 0);
  }
  Tensor scaled_self, negative, scaled_other;
  Gradients gradients{Tensor(), Tensor()};
  if (b.wants("self")) {
    scaled_self = b.grad() * b("other");
    gradients[0] = scaled_self * inverse;
  }
  if (b.wants("other")) {
    negative = neg(b("self"));
    scaled_other = b.grad() * negative;
    gradients[1] = scaled_other * inverse;
  }
  scaled_other.reset();
  negative.reset();
  scaled_self.reset();
  return gradients;
}

Tensor copysign_gradient(Backward& b) {
  const Tensor ratio = b("result") / b("self");
  call<"masked_fill_.Scalar">(b.session, ratio, eq(b("self"), 0), 0);
  return b.grad() * ratio;
}

Tensor zeros_of_argument(Backward& b, Name argument) {
  const TensorImpl& shape = *b.shape(argument);
  return call<"zeros">(b.session, shape.sizes, shape.dtype, Value(), shape.device);
}

Tensor next_number_gradient(Backward& b) {
  const Tensor differ = ne(b("self"), b("other"));
  return call<"where.ScalarOther">(b.session, differ, b.grad(), 0);
}

constexpr Op next_number(const Derivatives& derivatives) {
  return function_of_two("nextafter(Tensor self, Tensor other) -> Tensor",
                         "the next number from self towards other", promoted_meta, derivatives);
}

constexpr Op kSigns[] = {
    function_of_two("copysign.Tensor(Tensor self, Tensor other) -> Tensor", "|self| with the sign of other",
                    promoted_floating_meta,
                    {{{"other"}, {}, [](Backward& b) { return zeros_of_argument(b, "other"); }},
                     {{"self"}, {"self", "result"}, [](Backward& b) { return copysign_gradient(b); }}}),
    node_named(
        "CopysignBackward1",
        function_of_two("copysign.Scalar(Tensor self, Scalar other) -> Tensor",
                        "|self| with the sign of other", promoted_floating_meta,
                        {{{"self"}, {"self", "result"}, [](Backward& b) { return copysign_gradient(b); }}},
                        {"f32[2,3] -1"})),
    node_named(
        "NotImplemented",
        function_of_two("heaviside(Tensor self, Tensor values) -> Tensor", "0 below 0, values at 0, 1 above",
                        promoted_meta, {{{"self"}, {}, not_implemented}, {{"values"}, {}, not_implemented}})),
    before({2, 15}, next_number({{{"other"}, {}, not_implemented}, {{"self"}, {}, not_implemented}})),
    since({2, 15},
          next_number({{{"other"}, {"other"}, [](Backward& b) { return zeros_of_argument(b, "other"); }},
                       {{"self"}, {"self", "other"}, [](Backward& b) { return next_number_gradient(b); }}}))};

constexpr Op kDistances[] = {
    function_of_two(
        "hypot(Tensor self, Tensor other) -> Tensor", "√(self² + other²)", promoted_meta,
        {{{"other"}, {"other", "result"}, [](Backward& b) { return b.grad() * b("other") / b("result"); }},
         {{"self"}, {"self", "result"}, [](Backward& b) { return b.grad() * b("self") / b("result"); }}}),
    under_autocast(
        Autocast::promote,
        function_of_two("atan2(Tensor self, Tensor other) -> Tensor", "angle of (other, self)",
                        promoted_floating_meta, {{{"self", "other"}, {"self", "other"}, atan2_backward}}))};

// --- complex numbers

void complex_meta(Call& c) {
  const Tensor &a = c.arguments[0].tensor(), &b = c.arguments[1].tensor();
  elementwise(c, {&a, &b}, complex_type(result_type({&a, &b})));
}

// FunctionsManual.cpp, polar_backward: real(conj(grad) · sgn(result)), real(conj(grad) · i·result).
Gradients polar_backward(Backward& b) {
  Gradients gradients{Tensor(), Tensor()};
  {
    const Tensor direction = sgn(b("result"));
    gradients[0] = real(conj(b.grad()) * direction);
  }
  const Tensor turned = b("result") * Value::complex(0, 1);
  gradients[1] = real(conj(b.grad()) * turned);
  return gradients;
}

// native/UnaryOps.cpp, unary_op_impl_with_complex_to_float_out: angles of complex numbers are computed as
// complex numbers, and then their real part is copied into a contiguous result.
void angle_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  const DType dtype = to_floating(real_type(self.dtype()));
  if (is_complex(self.dtype())) {
    c.output(self.sizes(), dtype);
  } else {
    elementwise(c, {&self}, dtype);
  }
}

void angle_cuda(Call& c) {
  const Tensor& self = c.tensor("self");
  Tensor angles;
  if (is_complex(self.dtype())) angles = c.temporary(self.sizes(), self.dtype());
  c.allocate(0);
}

// FunctionsManual.cpp, angle_backward: 0 at the origin.
Gradients angle_backward(Backward& b) {
  const Tensor& self = b("self");
  if (!is_complex(b.dtype("self")))
    return {Tensor(
        call<"zeros_like">(b.session, self, Value(), Value(), Value(), Value(), MemoryFormat::contiguous))};
  const Tensor length = abs(self);
  const Tensor square = pow(length, 2);
  const Tensor outwards = b.grad() * self;
  const Tensor slope = outwards / square;
  const Tensor turned = slope * Value::complex(0, 1);
  const Tensor zero = zeros_of(self, {});
  const Tensor origin = eq(self, 0.0);
  return {where(origin, zero, turned)};
}

// Of a conjugate it makes what that is the conjugate of: ConjugateFallback.cpp lets these through.
constexpr Op reads_conjugates(Op op) {
  op.facts.reads_marks = kConjugated;
  return op;
}

constexpr Op kComplexNumbers[] = {
    only_functional(
        function_of_two("complex(Tensor real, Tensor imag) -> Tensor", "real + i·imag", complex_meta,
                        {{{"imag"}, {"imag"}, [](Backward& b) { return call<"imag">(b.session, b.grad()); }},
                         {{"real"}, {"real"}, [](Backward& b) { return real(b.grad()); }}})),
    only_functional(function_of_two("polar(Tensor abs, Tensor angle) -> Tensor", "abs · e^(i·angle)",
                                    complex_meta, {{{"abs", "angle"}, {"result"}, polar_backward}})),
    on_cuda(angle_cuda, only_functional(function_of_one("angle(Tensor self) -> Tensor",
                                                        "angle of a complex number; 0 or π of a real one",
                                                        angle_meta, {{{"self"}, {"self"}, angle_backward}}))),
    node_named("ConjPhysicalBackward0",
               reads_conjugates(only_functional(function_of_one(
                   "_conj_physical(Tensor self) -> Tensor", "complex conjugate", same_dtype_meta,
                   {{{"self"}, {}, [](Backward& b) { return call<"conj_physical">(b.session, b.grad()); }}},
                   {"c64[2,3]"})))),
    composite_of("conj_physical(Tensor self) -> Tensor", "complex conjugate",
                 [](Call& c) {
                   const Tensor& self = c.tensor("self");
                   c.result(is_complex(self.dtype()) ? call<"_conj_physical">(c.session, self) : self);
                 },
                 {"f32[2,3]"}),
    node_named(
        "ConjPhysicalBackward1",
        reads_conjugates(only_functional(function_of_one(
            "conj_physical_(Tensor(a!) self) -> Tensor(a!)", "complex conjugate", self_meta,
            {{{"self"}, {}, [](Backward& b) { return call<"conj_physical">(b.session, b.grad()); }}}))))};

void frexp_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  c.output_like(self);
  c.output_like(self, DType::i32);
}

constexpr Op kAngle[] = {
    {.schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
     .summary = "self = mantissa · 2^exponent",
     .meta = frexp_meta,
     .derivatives = {{{"self"},
                      {"exponent"},
                      [](Backward& b) { return b.grad() / call<"exp2">(b.session, b("exponent")); }}},
     .flops = elementwise_flops<1>,
     .examples = {"f32[2,3]"}}};

}  // namespace

Tables angle_operators() {
  static constexpr Records tables[] = {kSigns, kDistances, kComplexNumbers, kAngle};
  return tables;
}

}  // namespace metaprof
