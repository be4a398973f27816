// Quantiles by sorting (aten/src/ATen/native/Sorting.cpp, PyTorch 2.11).

#include <fmt/format.h>

#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

Sizes result_sizes(const Call& c, const Tensor& self, const Tensor& q) {
  const bool keepdim = c.boolean("keepdim");
  Sizes sizes;
  if (q.dim() > 0) sizes.push_back(q.numel());
  if (!c.given("dim") || self.dim() == 0) {
    for (int64_t d = 0; keepdim && d < self.dim(); ++d) sizes.push_back(1);
    return sizes;
  }
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim || keepdim) sizes.push_back(d == dim ? 1 : self.size(d));
  return sizes;
}

// The dimension that is asked for is the last one.
Tensor with_dimension_last(Call& c, const Tensor& self) {
  if (!c.given("dim")) return call<"flatten.using_ints">(c.session, self);
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  return dim == self.dim() - 1 ? self : transpose(unsqueeze(self, -1), dim, -1);
}

Tensor sorted_values(Call& c, const Tensor& input) { return call_all<"sort">(c.session, input)[0]; }

// Between 0 and the last element that is a number.
template <bool in_fp64>
Tensor ranks_of_numbers(Call& c, const Tensor& input, const Tensor& q) {
  Tensor ranks;
  {
    const Tensor numbers = isnan(input);
    call<"logical_not_">(c.session, numbers);
    const Tensor count = sum(numbers, Sizes{-1}, true), last = count - 1;
    const Tensor shares = in_fp64 ? to(q, DType::f64) : q;
    ranks = shares * last;
  }
  const Tensor negative = lt(ranks, 0);
  return masked_fill_(ranks, negative, 0);
}

// Between 0 and the last element, which is a NaN if there is one.
template <bool in_fp64>
Tensor ranks_of_all(Call& c, const Tensor& input, const Tensor& q) {
  const int64_t last = input.size(-1) - 1;
  Value::Tensors both;
  {
    const Tensor shares = in_fp64 ? to(q, DType::f64) : q;
    const Tensor rank = shares * last, undefined = isnan(input);
    const Tensor any = call<"any.dim">(c.session, undefined, -1, true);
    both = call_all<"broadcast_tensors">(c.session, Value::Tensors{rank, any}).tensors();
  }
  return masked_fill(both[0], both[1], last);
}

// In place: the values at the ranks below become those between.
void interpolate(Call& c, const Tensor& low, const Tensor& sorted, const Tensor& ranks, const Tensor& by) {
  call<"ceil_">(c.session, ranks);
  const Tensor places = to(ranks, DType::i64), above = gather(sorted, -1, places);
  call<"lerp_.Tensor">(c.session, low, above, by);
}

Tensor values_at(Call& c, const Tensor& sorted, const Tensor& ranks) {
  const std::string& mode = c["interpolation"].string();
  if (mode == "lower") call<"floor_">(c.session, ranks);
  if (mode == "higher") call<"ceil_">(c.session, ranks);
  if (mode == "nearest") call<"round_">(c.session, ranks);
  Tensor places = to(ranks, DType::i64), values = gather(sorted, -1, places);
  if (mode == "linear") interpolate(c, values, sorted, ranks, ranks - places);
  if (mode == "midpoint") interpolate(c, values, sorted, ranks, call<"full_like">(c.session, ranks, 0.5));
  return values;
}

template <bool skips_nan, bool in_fp64>
Tensor ranks_by(Call& c, const Tensor& input, const Tensor& q) {
  return skips_nan ? ranks_of_numbers<in_fp64>(c, input, q) : ranks_of_all<in_fp64>(c, input, q);
}

// How values are found: sorted first, with ranks of their type.
template <bool skips_nan>
Tensor sort_then_rank(Call& c, const Tensor& input, const Sizes& rows, const Tensor& q) {
  const Tensor sorted = view(sorted_values(c, input), rows);
  const Tensor ranks = ranks_by<skips_nan, false>(c, sorted, q);
  return values_at(c, sorted, ranks);
}

// From 2.14 on: ranks in fp64 first (recorded: `opinfo/quantile`, 2.15).
template <bool skips_nan>
Tensor rank_then_sort(Call& c, const Tensor& flat, const Sizes& rows, const Tensor& q) {
  const Tensor input = reshape(flat, rows);
  const Tensor ranks = ranks_by<skips_nan, true>(c, input, q);
  const std::string& mode = c["interpolation"].string();
  if (mode == "lower") call<"floor_">(c.session, ranks);
  if (mode == "higher") call<"ceil_">(c.session, ranks);
  if (mode == "nearest") call<"round_">(c.session, ranks);
  const Tensor places = to(ranks, DType::i64);
  Tensor weights, places_above;
  if (mode == "linear") weights = to(ranks - places, input.dtype());
  if (mode == "midpoint") weights = call<"full_like">(c.session, ranks, 0.5, input.dtype());
  if (weights.defined()) {
    call<"ceil_">(c.session, ranks);
    places_above = to(ranks, DType::i64);
  }
  Tensor sorted = sorted_values(c, input), values = gather(sorted, -1, places);
  if (!weights.defined()) return values;
  const Tensor above = gather(sorted, -1, places_above);
  call<"lerp_.Tensor">(c.session, values, above, weights);
  return values;
}

template <bool skips_nan, bool rank_first>
void quantile(Call& c, const Tensor& q) {
  const Tensor& self = c.tensor("self");
  if (q.dim() > 1) c.error(fmt::format("q must be a number or a vector, got {}", describe(q)));
  if (self.numel() == 0) c.error("expects at least one element");
  const Sizes sizes = result_sizes(c, self, q);
  Sizes rows(sizes.begin() + (q.dim() > 0 ? 1 : 0), sizes.end());
  const Tensor input = with_dimension_last(c, self);
  rows.push_back(input.size(-1));
  const Tensor values = rank_first ? rank_then_sort<skips_nan>(c, input, rows, q)
                                   : sort_then_rank<skips_nan>(c, input, rows, q);
  if (q.dim() > 0) {
    call<"unsqueeze_">(c.session, values, 0);
    call<"transpose_">(c.session, values, 0, -1);
  }
  call<"squeeze_.dim">(c.session, values, -1);
  c.result(values);
}

template <bool skips_nan, bool rank_first>
void quantile_body(Call& c) {
  quantile<skips_nan, rank_first>(c, c.tensor("q"));
}

template <bool skips_nan, bool rank_first>
void quantile_number_body(Call& c) {
  if (c.real("q") < 0 || c.real("q") > 1) c.error(fmt::format("q must be in [0, 1], got {}", c.real("q")));
  const Tensor q = scalar_like(c.tensor("self"), c["q"]);
  quantile<skips_nan, rank_first>(c, q);
}

template <bool rank_first>
constexpr auto quantiles(const FrameworkRange& versions) {
  std::array ops = {
      composite_of("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                   "interpolation=\"linear\") -> Tensor",
                   "below these values lie shares q of all", quantile_body<false, rank_first>,
                   {"f32[3,5] f32[2]", "f32[3,5] f32[2] 0 True \"lower\""}),
      composite_of("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                   "interpolation=\"linear\") -> Tensor",
                   "below this value lies a share q of all", quantile_number_body<false, rank_first>,
                   {"f32[3,5] 0.5", "f32[3,5] 0.5 1 False \"nearest\""}),
      composite_of("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                   "interpolation=\"linear\") -> Tensor",
                   "below these values lie shares q of all numbers", quantile_body<true, rank_first>,
                   {"f32[3,5] f32[2] 0"}),
      composite_of("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                   "interpolation=\"linear\") -> Tensor",
                   "below this value lies a share q of all numbers", quantile_number_body<true, rank_first>,
                   {"f32[3,5] 0.5 1", "f32[3,5] 0.5 1 True \"midpoint\""})};
  for (Op& op : ops) op.facts.versions = versions;
  return ops;
}
constexpr auto kQuantiles = quantiles<false>({.before = {2, 14}}),
               kQuantilesSince14 = quantiles<true>({.since = {2, 14}});

}  // namespace

Tables quantile_operators() {
  static constexpr Records tables[] = {kQuantiles, kQuantilesSince14};
  return tables;
}

}  // namespace metaprof
