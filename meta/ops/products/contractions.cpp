// Contractions: outer and inner products, tensordot, bilinear forms, Kronecker products.

#include "meta/ops/products/contractions.h"

#include <fmt/format.h>

#include <algorithm>

#include "meta/ops/products/family.h"
#include "meta/ops/products/matmul.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/views/views.h"

namespace metaprof {
namespace {

bool contains(const Sizes& dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

int64_t product(const Tensor& tensor, const Sizes& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= tensor.size(dim);
  return count;
}

Sizes joined(std::initializer_list<const Sizes*> parts) {
  Sizes all;
  for (const Sizes* part : parts) all.append(part->begin(), part->end());
  return all;
}

}  // namespace

Tensor sum_of_products(Session& session, Tensor left, Tensor right, const Sizes& dims) {
  if (dims.empty()) return mul(left, right);
  Sizes both, only_left, only_right;  // dimensions of the result that are not of size 1 in …
  int64_t summed = 1;
  for (int64_t d = 0; d < left.dim(); ++d) {
    const bool in_left = left.size(d) != 1, in_right = right.size(d) != 1;
    if (contains(dims, d)) {
      if (in_left && in_right) {
        summed *= left.size(d);
      } else if (in_left) {
        left = sum(left, Sizes{d}, true);
      } else if (in_right) {
        right = sum(right, Sizes{d}, true);
      }
    } else if (in_left && in_right) {
      both.push_back(d);
    } else if (in_left) {
      only_left.push_back(d);
    } else {
      only_right.push_back(d);
    }
  }
  const int64_t batch = product(left, both), rows = product(left, only_left),
                columns = product(right, only_right);
  const Sizes left_order = joined({&both, &only_left, &dims, &only_right});
  const Sizes right_order = joined({&both, &dims, &only_right, &only_left});
  Sizes sizes, order(left_order.size());
  for (int64_t d : both) sizes.push_back(left.size(d));
  for (int64_t d : only_left) sizes.push_back(left.size(d));
  for (size_t i = 0; i < dims.size(); ++i) sizes.push_back(1);
  for (int64_t d : only_right) sizes.push_back(right.size(d));
  for (size_t i = 0; i < left_order.size(); ++i) order[size_t(left_order[i])] = int64_t(i);

  left = reshape(permute(left, left_order), Sizes{batch, rows, summed});
  right = reshape(permute(right, right_order), Sizes{batch, summed, columns});
  Tensor result = call<"bmm">(session, left, right);
  return permute(view(result, sizes), order);
}

namespace {

void outer_body(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("vec2");
  if (a.dim() != 1 || b.dim() != 1)
    c.error(fmt::format("expects two vectors, got {} and {}", describe(a), describe(b)));
  c.result(mul(reshape(a, Sizes{a.size(0), 1}), b));
}

void inner_body(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("other");
  if (a.dim() == 0 || b.dim() == 0) return c.result(mul(a, b));
  c.result(call<"tensordot">(c.session, a, b, Sizes{-1}, Sizes{-1}));
}

struct Contracted {
  Tensor tensor;
  Sizes dims;  // those that are summed, in the caller's order
  Sizes kept;

  Sizes kept_sizes() const {
    Sizes sizes;
    for (int64_t d : kept) sizes.push_back(tensor.size(d));
    return sizes;
  }
};

Contracted contracted(const Tensor& tensor, const Sizes& dims) {
  Contracted side{tensor, {}, {}};
  for (int64_t dim : dims) side.dims.push_back(wrap_dim(dim, tensor.dim()));
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (!contains(side.dims, d)) side.kept.push_back(d);
  return side;
}

// A single number: as a dot product if nothing must be copied for it, else as a sum of products.
Tensor contracted_to_number(Session& session, const Tensor& a, const Tensor& b, const Sizes& sizes) {
  if (a->contiguous && b->contiguous) {
    const Tensor flat_a = call<"flatten.using_ints">(session, a),
                 flat_b = call<"flatten.using_ints">(session, b);
    return reshape(call<"dot">(session, flat_a, flat_b), sizes);
  }
  const Tensor thin_a = call<"squeeze">(session, a), thin_b = call<"squeeze">(session, b);
  return reshape(sum(mul(thin_a, thin_b)), sizes);
}

void tensordot_body(Call& c) {
  const Sizes &dims_a = c.ints("dims_self"), &dims_b = c.ints("dims_other");
  if (dims_a.size() != dims_b.size()) c.error("needs as many dimensions of self as of other");
  Contracted a = contracted(c.tensor("self"), dims_a), b = contracted(c.tensor("other"), dims_b);
  int64_t summed = 1;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    const int64_t x = c.tensor("self").size(a.dims[i]), y = c.tensor("other").size(b.dims[i]);
    if (y == 1) {
      a.tensor = sum(a.tensor, Sizes{a.dims[i]}, true);
    } else if (x == 1) {
      b.tensor = sum(b.tensor, Sizes{b.dims[i]}, true);
    } else if (x != y) {
      c.error(fmt::format("contracted sizes must agree; got {} and {}", x, y));
    } else {
      summed *= x;
    }
  }
  const Sizes kept_a = a.kept_sizes(), kept_b = b.kept_sizes(), sizes = joined({&kept_a, &kept_b});
  const int64_t rows = numel(kept_a), columns = numel(kept_b);
  const Sizes order_a = joined({&a.kept, &a.dims}), order_b = joined({&b.dims, &b.kept});
  if (rows == 1 && columns == 1) {
    const Tensor left = permute(a.tensor, order_a), right = permute(b.tensor, order_b);
    return c.result(contracted_to_number(c.session, left, right, sizes));
  }
  const Tensor left = reshape(permute(a.tensor, order_a), Sizes{rows, summed});
  const Tensor right = reshape(permute(b.tensor, order_b), Sizes{summed, columns});
  c.result(reshape(mm(left, right), sizes));
}

void kron_body(Call& c) {
  const Tensor &a = c.tensor("self"), &b = c.tensor("other");
  const auto dims = size_t(std::max(a.dim(), b.dim()));
  Sizes spread_a, spread_b, sizes;
  for (size_t d = 0; d < dims; ++d) {
    const size_t missing_a = dims - size_t(a.dim()), missing_b = dims - size_t(b.dim());
    const int64_t x = d < missing_a ? 1 : a.sizes()[d - missing_a],
                  y = d < missing_b ? 1 : b.sizes()[d - missing_b];
    for (int64_t size : {x, int64_t{1}}) spread_a.push_back(size);
    for (int64_t size : {int64_t{1}, y}) spread_b.push_back(size);
    sizes.push_back(multiply(x, y));
  }
  const Tensor wide_b = call<"_unsafe_view">(c.session, b, spread_b);
  const Tensor wide_a = call<"_unsafe_view">(c.session, a, spread_a);
  c.result(call<"_unsafe_view">(c.session, mul(wide_a, wide_b), sizes));
}

void bilinear_body(Call& c) {
  const Tensor &x = c.tensor("input1"), &y = c.tensor("input2"), &weight = c.tensor("weight"),
               &bias = c.tensor("bias");
  if (weight.dim() != 3 || x.dim() != y.dim() || x.dim() == 0 || x.size(-1) != weight.size(1) ||
      y.size(-1) != weight.size(2))
    c.error(
        fmt::format("inputs {} and {} do not fit the weight {}", describe(x), describe(y), describe(weight)));
  Sizes sizes = x.sizes();
  sizes.back() = weight.size(0);
  const Tensor rows_x = reshape(x, Sizes{-1, x.size(-1)}), rows_y = reshape(y, Sizes{-1, y.size(-1)});
  Tensor out =
      call<"_trilinear">(c.session, rows_x, weight, rows_y, Sizes{1, 3}, Sizes{0}, Sizes{1, 2}, Sizes{2, 3});
  out = reshape(out, sizes);
  c.result(bias.defined() ? add(out, bias) : out);
}

// --- _trilinear: Σ i1·i2·i3, one slice of a dimension after the other.

struct Trilinear {
  Tensor factors[3];       // with all dimensions
  Sizes sums_12, sums_23;  // what the first and the second product sum over
  Sizes sizes;             // of the result before summed dimensions are dropped
  Sizes dropped;
  bool fixed[3];  // a factor does not have the dimension that is unrolled
  int64_t unrolled = 0, steps = 0;
};

Trilinear trilinear_of(Call& c) {
  Trilinear t;
  t.dropped = c.ints("sumdim");
  t.unrolled = c.integer("unroll_dim");
  const Sizes* expanded[] = {&c.ints("expand1"), &c.ints("expand2"), &c.ints("expand3")};
  const Tensor* given[] = {&c.tensor("i1"), &c.tensor("i2"), &c.tensor("i3")};
  for (int i = 0; i < 3; ++i) t.factors[i] = *given[i];
  const int64_t dims = t.factors[0].dim() + int64_t(expanded[0]->size());
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = 0;
    for (int i = 0; i < 3; ++i) {
      if (contains(*expanded[i], d)) {
        t.factors[i] = unsqueeze(t.factors[i], d);
      } else {
        size = t.factors[i].size(d);
      }
    }
    const bool summed = contains(t.dropped, d);
    if (summed && d != t.unrolled) (contains(*expanded[2], d) ? t.sums_12 : t.sums_23).push_back(d);
    t.sizes.push_back(summed ? 1 : size);
    if (d == t.unrolled) t.steps = size;
  }
  for (int i = 0; i < 3; ++i) t.fixed[i] = contains(*expanded[i], t.unrolled);
  return t;
}

void trilinear_meta(Call& c) {
  BelowAutograd below(c.session);
  const Trilinear t = trilinear_of(c);
  Sizes sizes;
  for (size_t d = 0; d < t.sizes.size(); ++d)
    if (!contains(t.dropped, int64_t(d))) sizes.push_back(t.sizes[d]);
  c.output(sizes, t.factors[0].dtype());
}

void trilinear_kernel(Call& c) {
  c.allocate(0);
  Trilinear t = trilinear_of(c);
  for (const Tensor& factor : t.factors)
    if (factor.numel() == 0) return;
  const Tensor& out = c.result_tensor();
  const Tensor whole = as_strided(out, t.sizes, contiguous_strides(t.sizes), 0);
  const bool accumulates = contains(t.dropped, t.unrolled);
  for (int64_t k = 0; k < t.steps; ++k) {
    auto slice = [&](int i) {
      return call<"narrow">(c.session, t.factors[i], t.unrolled, t.fixed[i] ? 0 : k, 1);
    };
    const Tensor second = slice(1), first = slice(0);
    Tensor product = sum_of_products(c.session, first, second, t.sums_12);
    product = sum_of_products(c.session, product, slice(2), t.sums_23);
    const Tensor target = accumulates ? whole : call<"narrow">(c.session, whole, t.unrolled, k, 1);
    call<"add_.Tensor">(c.session, target, product);
  }
}

Gradients trilinear_backward(Backward& b) {
  const Tensor &grad = b.grad(), &i1 = b("i1"), &i2 = b("i2"), &i3 = b("i3");
  const Sizes &e1 = b.ints("expand1"), &e2 = b.ints("expand2"), &e3 = b.ints("expand3"),
              &sums = b.ints("sumdim");
  Gradients out;
  out.resize(3);
  if (b.wants("i1")) out[0] = call<"_trilinear">(b.session, grad, i2, i3, sums, e2, e3, e1);
  if (b.wants("i2")) out[1] = call<"_trilinear">(b.session, i1, grad, i3, e1, sums, e3, e2);
  if (b.wants("i3")) out[2] = call<"_trilinear">(b.session, i1, i2, grad, e1, e2, sums, e3);
  return out;
}

// Two multiplications and an addition for every element of the product of all dimensions.
FlopCount trilinear_flops(const Call& c) {
  int64_t count = 1;
  const Sizes &e1 = c.ints("expand1"), &e2 = c.ints("expand2");
  const int64_t dims = c.tensor("i1").dim() + int64_t(e1.size());
  int64_t at1 = 0, at2 = 0, at3 = 0;
  for (int64_t d = 0; d < dims; ++d) {
    int64_t size = 1;
    if (!contains(e1, d)) size = std::max(size, c.tensor("i1").size(at1++));
    if (!contains(e2, d)) size = std::max(size, c.tensor("i2").size(at2++));
    if (!contains(c.ints("expand3"), d)) size = std::max(size, c.tensor("i3").size(at3++));
    count = multiply(count, size);
  }
  return {.own = multiply(3, count)};
}

constexpr Op kContraction[] = {
    composite_of("outer(Tensor self, Tensor vec2) -> Tensor", "self vec2ᵀ", outer_body, {"f32[2] f32[3]"}),
    composite_of("ger(Tensor self, Tensor vec2) -> Tensor", "self vec2ᵀ",
                 [](Call& c) { c.result(call<"outer">(c.session, c.tensor("self"), c.tensor("vec2"))); },
                 {"f32[2] f32[3]"}),
    composite_of("inner(Tensor self, Tensor other) -> Tensor", "Σ over the last dimensions", inner_body,
                 {"f32[2,3] f32[4,3]", "f32[] f32[2]"}),
    under_autocast(
        Autocast::promote,
        composite_of("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
                     "Σ over pairs of dimensions", tensordot_body, {"f32[2,3,4] f32[4,3,5] (1 2) (1 0)"})),
    composite_of("kron(Tensor self, Tensor other) -> Tensor", "Kronecker product", kron_body,
                 {"f32[2,2] f32[3]"}),
    under_autocast(
        Autocast::promote,
        composite_of("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
                     "input1 · weight[o] · input2 + bias", bilinear_body,
                     {"f32[2,3] f32[2,4] f32[5,3,4] f32[5]"})),
    {.schema = "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
               "int[] sumdim, int unroll_dim=1) -> Tensor",
     .summary = "Σ i1 · i2 · i3",
     .meta = trilinear_meta,
     .host_code = {{DeviceType::cuda, trilinear_kernel}},
     .derivatives = {{{"i1", "i2", "i3"}, {"i1", "i2", "i3"}, trilinear_backward}},
     .flops = trilinear_flops,
     .examples = {"f32[2,3] f32[5,3,4] f32[2,4] (1 3) (0) (1 2) (2 3)"},
     .facts = {.keeps_for_others = true}}};

}  // namespace

Tables contraction_operators() {
  static constexpr Records tables[] = {kContraction};
  return tables;
}

}  // namespace metaprof
