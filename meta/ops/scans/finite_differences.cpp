// Slopes by finite differences.

#include <fmt/format.h>

#include <array>

#include "meta/ops/rules/elementwise.h"
#include "meta/ops/scans/family.h"

namespace metaprof {
namespace {

// Scalars of a list; a list of whole numbers is kept as integers.
std::vector<double> numbers(const Value& list) {
  if (list.kind() == Value::Kind::integers)
    return std::vector<double>(list.integers().begin(), list.integers().end());
  return list.reals();
}

Tensor from(const Tensor& tensor, int64_t dim, int64_t start) { return slice(tensor, dim, start, Value()); }

// ATen/native/ReduceOps.cpp, gradient_helper_float: one-sided of order 1 or 2 at the ends, central between.

Tensor first_slope(const Tensor& y, int64_t dim, double dx, int64_t order) {
  if (order == 1) {
    const Tensor left = slice(y, dim, 0, 1);
    return (slice(y, dim, 1, 2) - left) / dx;
  }
  const Tensor third = slice(y, dim, 2, 3) * 0.5;
  const Tensor second = slice(y, dim, 1, 2) * 2;
  const Tensor first = slice(y, dim, 0, 1) * -1.5;
  return (first + second - third) / dx;
}

Tensor last_slope(const Tensor& y, int64_t dim, double dx, int64_t order) {
  if (order == 1) {
    const Tensor left = slice(y, dim, -2, -1);
    return (from(y, dim, -1) - left) / dx;
  }
  const Tensor last = from(y, dim, -1) * 1.5;
  const Tensor second = slice(y, dim, -2, -1) * 2;
  const Tensor third = slice(y, dim, -3, -2) * 0.5;
  return (third - second + last) / dx;
}

Tensor gradient_along(const Tensor& y, int64_t dim, double dx, int64_t order) {
  Tensor first, last;
  const Tensor left = slice(y, dim, 0, -2);
  const Tensor centre = (from(y, dim, 2) - left) / dx;
  first = first_slope(y, dim, dx, order);
  last = last_slope(y, dim, dx, order);
  const Tensor middle = centre / 2;
  return call<"cat">(session_of(y), std::vector<Tensor>{first, middle, last}, dim);
}

// gradient_helper, where points lie at any places: each slope is a sum of three values by weights, which
// follow from the distances before and behind. The framework adds and weighs from right to left.

struct Weights {
  Tensor first, second, third;
};

Tensor weighted_sum(const Weights& w, const Tensor& y, int64_t dim, std::array<Value, 6> ranges) {
  const Tensor third = w.third * slice(y, dim, ranges[4], ranges[5]);
  const Tensor second = w.second * slice(y, dim, ranges[2], ranges[3]);
  const Tensor first = w.first * slice(y, dim, ranges[0], ranges[1]);
  return first + second + third;
}

Weights central_weights(const Tensor& distances, const Sizes& along) {
  const Tensor before = slice(distances, 0, 0, -1), behind = from(distances, 0, 1);
  Weights w;
  {
    const Tensor both = before + behind, product = before * both, negative = neg(behind);
    w.first = reshape(negative / product, along);
  }
  {
    const Tensor product = before * behind, difference = behind - before;
    w.second = reshape(difference / product, along);
  }
  {
    const Tensor both = before + behind, product = behind * both;
    w.third = reshape(before / product, along);
  }
  return w;
}

// At the first point: `near` is the distance to the second, `far` from there to the third.
Weights first_weights(const Tensor& near, const Tensor& far) {
  Weights w;
  {
    const Tensor both = near + far, product = near * both;
    const Tensor twice = near * 2.0, sum = twice + far, negative = neg(sum);
    w.first = negative / product;
  }
  {
    const Tensor product = near * far, both = near + far;
    w.second = both / product;
  }
  {
    const Tensor both = near + far, product = far * both, negative = neg(near);
    w.third = negative / product;
  }
  return w;
}

// At the last point, likewise from the end.
Weights last_weights(const Tensor& near, const Tensor& far) {
  Weights w;
  {
    const Tensor both = near + far, product = far * both;
    w.first = near / product;
  }
  {
    const Tensor product = near * far, both = near + far, negative = neg(both);
    w.second = negative / product;
  }
  {
    const Tensor both = near + far, product = near * both, twice = near * 2, sum = twice + far;
    w.third = sum / product;
  }
  return w;
}

Tensor first_slope(const Tensor& y, int64_t dim, const Tensor& distances, int64_t order) {
  const Tensor near = select(distances, 0, 0);
  if (order == 2) {
    const Weights w = first_weights(near, select(distances, 0, 1));
    return weighted_sum(w, y, dim, {0, 1, 1, 2, 2, 3});
  }
  const Tensor rise = slice(y, dim, 1, 2) - slice(y, dim, 0, 1);
  return rise / near;
}

Tensor last_slope(const Tensor& y, int64_t dim, const Tensor& distances, int64_t order) {
  const Tensor near = select(distances, 0, -1);
  if (order == 2) {
    const Weights w = last_weights(near, select(distances, 0, -2));
    return weighted_sum(w, y, dim, {-3, -2, -2, -1, -1, Value()});
  }
  const Tensor rise = from(y, dim, -1) - slice(y, dim, -2, -1);
  return rise / near;
}

Tensor gradient_along(const Tensor& y, int64_t dim, const Tensor& places, int64_t order) {
  const Tensor distances = call<"diff">(session_of(places), places);
  Sizes along(y.sizes().size(), 1);
  along[size_t(dim)] = -1;
  const Weights w = central_weights(distances, along);
  const Tensor centre = weighted_sum(w, y, dim, {0, -2, 1, -1, 2, Value()});
  const Tensor first = first_slope(y, dim, distances, order), last = last_slope(y, dim, distances, order);
  return call<"cat">(session_of(y), Value::Tensors{first, centre, last}, dim);
}

// Slopes along each of the dimensions, by a spacing (a number or the places of the points) for each.
template <class Spacing>
void gradients(Call& c, const Sizes& dims, const std::vector<Spacing>& spacing) {
  const Tensor& self = c.tensor("self");
  const int64_t order = c.integer("edge_order");
  if (order != 1 && order != 2) c.error(fmt::format("edge_order is 1 or 2, got {}", order));
  if (dims.size() != spacing.size())
    c.error(fmt::format("needs a spacing for each of {} dimensions, got {}", dims.size(), spacing.size()));
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (self.size(dims[i]) < order + 1)
      c.error(fmt::format("needs at least {} points along dimension {}; got {}", order + 1, dims[i],
                          describe(self)));
    out.push_back(gradient_along(self, wrap_dim(dims[i], self.dim()), spacing[i], order));
  }
  c.result(std::move(out));
}

Sizes all_dims(const Call& c) {
  Sizes dims;
  for (int64_t d = 0; d < c.tensor("self").dim(); ++d) dims.push_back(d);
  return dims;
}
Sizes dims_or_all(const Call& c) { return c.given("dim") ? Sizes{c.integer("dim")} : all_dims(c); }

void gradient_number_body(Call& c) {
  const Sizes dims = dims_or_all(c);
  const double spacing = c.given("spacing") ? c.real("spacing") : 1.0;
  gradients(c, dims, std::vector<double>(dims.size(), spacing));
}
void gradient_number_dims_body(Call& c) {
  gradients(c, c.ints("dim"), std::vector<double>(c.ints("dim").size(), c.real("spacing")));
}
void gradient_dims_body(Call& c) {
  gradients(c, c.ints("dim"), std::vector<double>(c.ints("dim").size(), 1.0));
}
void gradient_places_body(Call& c) { gradients(c, dims_or_all(c), c.tensors("spacing")); }
void gradient_places_dims_body(Call& c) { gradients(c, c.ints("dim"), c.tensors("spacing")); }
void gradient_numbers_body(Call& c) { gradients(c, dims_or_all(c), numbers(c["spacing"])); }
void gradient_numbers_dims_body(Call& c) { gradients(c, c.ints("dim"), numbers(c["spacing"])); }

constexpr Op kGradient[] = {
    composite_of("gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) "
                 "-> Tensor[]",
                 "slopes along dimensions", gradient_number_body, {"f32[4,5]"}),
    composite_of("gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) "
                 "-> Tensor[]",
                 "slopes along dimensions", gradient_numbers_body, {"f32[4,5] (1.0 2.0)"}),
    composite_of(
        "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        "slopes along dimensions", gradient_numbers_dims_body, {"f32[4,5] (1.0 2.0) (0 1)"}),
    composite_of(
        "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
        "slopes along dimensions", gradient_number_dims_body, {"f32[4,5] 2.0 (0 1)"}),
    composite_of("gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
                 "slopes along dimensions", gradient_dims_body, {"f32[4,5] (1)"}),
    composite_of("gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) "
                 "-> Tensor[]",
                 "slopes along dimensions", gradient_places_body, {"f32[4,5] (f32[4] f32[5])"}),
    composite_of(
        "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
        "slopes along dimensions", gradient_places_dims_body, {"f32[4,5] (f32[5]) (1) 2"})};

}  // namespace

Tables gradient_operators() {
  static constexpr Records tables[] = {kGradient};
  return tables;
}

}  // namespace metaprof
