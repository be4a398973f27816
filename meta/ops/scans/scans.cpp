// Running sums, products and extrema, and what is built on them.

#include <limits>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/cub.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "meta/ops/scans/family.h"

namespace metaprof {
namespace {

int64_t dim_of(const Call& c) { return wrap_dim(c.integer("dim"), c.tensor("self").dim()); }

void running_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  dim_of(c);
  c.output(self.sizes(), c.dtype("dtype", is_integral(self.dtype(), true) ? DType::i64 : self.dtype()));
}

// One contiguous dimension is scanned by CUB; anything else by kernels without temporaries
// (aten/src/ATen/native/cuda/ScanUtils.cuh, scan_dim).
void scan(Call& c, const Tensor& given) {
  if (given.dim() == 0 || given.numel() == 0) return;
  const Tensor input = c.contiguous(given);
  const DType dtype = c.result_tensor().dtype();
  if (input.numel() == input.size(dim_of(c)))
    c.temporary_bytes(cub_scan_bytes(input.numel(), element_size(dtype), cub_is_primitive(dtype)));
}

void running_cuda(Call& c) {
  c.allocate(0);
  const Tensor& self = c.tensor("self");
  if (self.dim() == 0) return;
  const Tensor input = to(self, c.result_tensor().dtype());
  scan(c, input);
}

void logcumsumexp_cuda(Call& c) {
  c.allocate(0);
  scan(c, c.tensor("self"));
}

Tensor reversed_cumsum(const Tensor& grad, int64_t dim) {
  const Tensor flipped = flip(grad, dim);
  const Tensor running = call<"cumsum">(session_of(grad), flipped, dim);
  return flip(running, dim);
}

Gradients cumsum_backward(Backward& b) {
  const Tensor grad = to(b.grad(), b.dtype("self"));
  const int64_t dim = b.integer("dim");
  if (grad.numel() <= 1 || grad.size(dim) == 1) return {grad};
  return {reversed_cumsum(grad, dim)};
}

// FunctionsManual.cpp, cumprod_backward, where no element is 0 (it looks).
void cumprod_backward_body(Call& c) {
  const Tensor &grad = c.tensor("grad"), &input = c.tensor("input");
  const int64_t dim = c.integer("dim");
  if (input.numel() <= 1 || input.size(dim) == 1) return c.result(grad);
  const Tensor weighted = mul(conj(c.tensor("output")), grad);
  const Tensor zero = eq(input, 0);
  { const Tensor any = call<"any">(c.session, zero); }
  const Tensor running = reversed_cumsum(weighted, dim);
  c.result(div(running, conj(input)));
}

void cummaxmin_backward_body(Call& c) {
  const Tensor& input = c.tensor("input");
  if (input.numel() == 0) return c.result(input);
  const Tensor zeros = zeros_of(input, input.sizes());
  c.result(call<"scatter_add_">(c.session, zeros, c["dim"], c["indices"], c["grad"]));
}

// log of the reversed running sum, in log space (FunctionsManual.cpp, logcumsumexp_backward).
Tensor reversed_logcumsumexp(const Tensor& x, int64_t dim) {
  const Tensor flipped = flip(x, dim);
  const Tensor running = call<"logcumsumexp">(session_of(x), flipped, dim);
  return flip(running, dim);
}

Tensor exponential_part(const Tensor& log_grad, const Tensor& result, const Tensor& self, int64_t dim) {
  const Tensor difference = sub(log_grad, result);
  const Tensor running = reversed_logcumsumexp(difference, dim);
  const Tensor shifted = add(running, self);
  return exp(shifted);
}

Tensor masked_log(const Tensor& condition, const Tensor& logarithm, const Tensor& lowest) {
  return where(condition, logarithm, lowest);
}

Gradients logcumsumexp_backward(Backward& b) {
  Session& s = b.session;
  const Tensor& grad = b.grad();
  const int64_t dim = b.integer("dim");
  if (grad.dim() == 0 || grad.numel() == 0) return {grad};
  const Tensor lowest =
      call<"scalar_tensor">(s, std::numeric_limits<float>::lowest(), grad.dtype(), Value(), grad.device());
  if (is_complex(grad.dtype())) {
    const Tensor logarithm = log(conj(grad));
    return {conj(exponential_part(logarithm, b("result"), b("self"), dim))};
  }
  Tensor logarithm;
  {
    const Tensor magnitude = abs(grad);
    logarithm = log(magnitude);
  }
  const Tensor positive = masked_log(call<"gt.Scalar">(s, grad, 0), logarithm, lowest);
  const Tensor negative = masked_log(call<"lt.Scalar">(s, grad, 0), logarithm, lowest);
  const Tensor of_positive = exponential_part(positive, b("result"), b("self"), dim);
  const Tensor of_negative = exponential_part(negative, b("result"), b("self"), dim);
  return {sub(of_positive, of_negative)};
}

void cumulative_extremum_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  dim_of(c);
  c.output(self.sizes(), self.dtype());
  c.output(self.sizes(), DType::i64);
}

// native/cuda/ScanKernels.cpp, cummax_helper_cuda.
void cumulative_extremum_cuda(Call& c) {
  c.allocate_all();
  const Tensor& self = c.tensor("self");
  if (self.dim() > 0 && self.numel() > 0) const Tensor input = c.contiguous(self);
}

constexpr Op cumulative_extremum(std::string_view schema, std::string_view summary) {
  return {.schema = schema,
          .summary = summary,
          .meta = cumulative_extremum_meta,
          .host_code = {{DeviceType::cuda, cumulative_extremum_cuda}},
          .derivatives = {{{"self"},
                           {"self", "indices"},
                           [](Backward& b) {
                             return call<"cummaxmin_backward">(b.session, b.grad(), b("self"), b("indices"),
                                                               b["dim"]);
                           }}},
          .flops = input_flops,
          .examples = {"f32[2,3] 1"},
          .facts = {.no_gradient_for = {"indices"}}};
}

// --- diff

void diff_body(Call& c) {
  Session& s = c.session;
  Tensor previous = c.tensor("self");
  const int64_t dim = c.integer("dim");
  int64_t n = c.integer("n");
  if (n == 0) {
    const Tensor out = zeros_like(previous);
    return c.result(copy_(out, previous));
  }
  if (c.given("prepend") || c.given("append")) {
    std::vector<Tensor> parts;
    if (c.given("prepend")) parts.push_back(c.tensor("prepend"));
    parts.push_back(previous);
    if (c.given("append")) parts.push_back(c.tensor("append"));
    previous = call<"cat">(s, std::move(parts), dim);
  }
  const int64_t size = previous.size(dim);
  n = std::min(n, size);
  const Tensor whole = previous;  // lives until the end
  Tensor result = previous;
  for (int64_t step = 0, length = size - 1; step < n; ++step, --length) {
    const Tensor lower = narrow(previous, dim, 0, length);
    const Tensor upper = narrow(previous, dim, 1, length);
    result = previous.dtype() == DType::b8 ? call<"logical_xor">(s, upper, lower) : sub(upper, lower);
    if (length == 0) break;
    previous = result;
  }
  c.result(result);
}

// --- trapezoid: areas between neighbours, summed or accumulated (aten/src/ATen/native/Integration.cpp)

// x with the dimensions that it lacks for y, as views.
Tensor under(const Tensor& x, const Tensor& y, int64_t dim) {
  if (x.dim() == 1) {
    Sizes sizes(size_t(y.dim()), 1);
    sizes[size_t(dim)] = x.size(0);
    return view(x, sizes);
  }
  if (x.dim() >= y.dim()) return x;
  Sizes sizes(size_t(y.dim() - x.dim()), 1);
  sizes.append(x.sizes().begin(), x.sizes().end());
  return view(x, sizes);
}

template <bool cumulative>
Tensor accumulated(const Tensor& areas, int64_t dim) {
  if constexpr (cumulative) return call<"cumsum">(session_of(areas), areas, dim);
  return sum(areas, Sizes{dim}, false);
}

template <bool cumulative>
void trapezoid_x_body(Call& c) {
  const Tensor& y = c.tensor("y");
  const int64_t dim = wrap_dim(c.integer("dim"), y.dim());
  if (y.size(dim) == 0) {
    Sizes sizes = y.sizes();
    if constexpr (!cumulative) sizes.erase(size_t(dim));
    return c.result(zeros_of(y, sizes));
  }
  const Tensor x = under(c.tensor("x"), y, dim);
  const Tensor x_left = slice(x, dim, 0, -1), x_right = slice(x, dim, 1, Value());
  const Tensor dx = sub(x_right, x_left);
  const Tensor left = slice(y, dim, 0, -1), right = slice(y, dim, 1, Value());
  const Tensor heights = add(left, right);
  const Tensor areas = mul(heights, dx);
  const Tensor total = accumulated<cumulative>(areas, dim);
  c.result(total / 2.0);
}

void trapezoid_dx_body(Call& c) {
  const Tensor& y = c.tensor("y");
  const int64_t dim = wrap_dim(c.integer("dim"), y.dim());
  if (y.size(dim) == 0) {
    Sizes sizes = y.sizes();
    sizes.erase(size_t(dim));
    return c.result(zeros_of(y, sizes));
  }
  Session& s = c.session;
  const Tensor first = call<"select.int">(s, y, dim, 0), last = call<"select.int">(s, y, dim, -1);
  const Tensor ends = add(first, last);
  const Tensor half = ends * 0.5;
  const Tensor total = sum(y, Sizes{dim}, false);
  const Tensor inner = sub(total, half);
  c.result(inner * c.real("dx"));
}

void cumulative_trapezoid_dx_body(Call& c) {
  const Tensor& y = c.tensor("y");
  const int64_t dim = wrap_dim(c.integer("dim"), y.dim());
  const Tensor left = slice(y, dim, 0, -1), right = slice(y, dim, 1, Value());
  const Tensor heights = add(left, right);
  const Tensor areas = heights * (c.real("dx") / 2);
  c.result(call<"cumsum">(c.session, areas, dim));
}

constexpr Op kRunning[] = {
    {.schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .summary = "running sum",
     .meta = running_meta,
     .host_code = {{DeviceType::cuda, running_cuda}},
     .derivatives = {{{"self"}, {}, cumsum_backward}},
     .flops = input_flops,
     .examples = {"f32[2,3] 1", "i64[4] 0"},
     .facts = {.in_place_too = true, .autocast = Autocast::fp32_set_dtype}},
    {.schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     .summary = "running product",
     .meta = running_meta,
     .host_code = {{DeviceType::cuda, running_cuda}},
     .derivatives = {{{"self"},
                      {"self", "result"},
                      [](Backward& b) -> Gradients {
                        const Tensor grad = to(b.grad(), b.dtype("self"));
                        return {Tensor(
                            call<"cumprod_backward">(b.session, grad, b("self"), b["dim"], b("result")))};
                      }}},
     .flops = input_flops,
     .examples = {"f32[2,3] 1"},
     .facts = {.in_place_too = true, .autocast = Autocast::fp32_set_dtype}},
    {.schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
     .summary = "log of the running sum of exp(self)",
     .meta = [](Call& c) { c.output(c.tensor("self").sizes(), to_floating(c.tensor("self").dtype())); },
     .host_code = {{DeviceType::cuda, logcumsumexp_cuda}},
     .derivatives = {{{"self"}, {"self", "result"}, logcumsumexp_backward}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 4 * c.tensor("self").numel()}; },
     .examples = {"f32[2,3] 1"}},
    cumulative_extremum("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                        "largest so far, and where it was"),
    cumulative_extremum("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
                        "smallest so far, and where it was"),
    composite_of("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
                 "gradient of the running product", cumprod_backward_body, {"f32[2,3] f32[2,3] 1 f32[2,3]"}),
    composite_of("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
                 "gradients added up where the running extremum was", cummaxmin_backward_body,
                 {"f32[2,3] f32[2,3] i64[2,3] 1"})};

constexpr Facts kCurve = {.takes = "y.dim >= 1"};
constexpr Op kScan[] = {
    composite_of(
        "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
        "differences between neighbours", diff_body, {"f32[2,3]", "f32[2,4] 2 -1 f32[2,1]"}),
    composite_of("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
                 "integral by trapezoids at places x", trapezoid_x_body<false>, {"f32[2,3] f32[3]"}, kCurve),
    composite_of("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
                 "integral by trapezoids of one width", trapezoid_dx_body, {"f32[2,3]"}, kCurve),
    composite_of("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", "integral by trapezoids at places x",
                 [](Call& c) { c.result(call<"trapezoid.x">(c.session, c["y"], c["x"], c["dim"])); },
                 {"f32[2,3] f32[3]"}),
    composite_of(
        "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", "integral by trapezoids of one width",
        [](Call& c) { c.result(call<"trapezoid.dx">(c.session, c["y"], c["dx"], c["dim"])); }, {"f32[2,3]"}),
    composite_of("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
                 "running integral by trapezoids at places x", trapezoid_x_body<true>, {"f32[2,3] f32[3]"},
                 kCurve),
    composite_of("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
                 "running integral by trapezoids of one width", cumulative_trapezoid_dx_body, {"f32[2,3]"},
                 kCurve)};

}  // namespace

Tables scan_operators() {
  static constexpr Records tables[] = {kRunning, kScan};
  return tables;
}

}  // namespace metaprof
