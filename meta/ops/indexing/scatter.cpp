// Reading and writing along one dimension at given places.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

// --- gather, index_select, take

void gather_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &index = c.tensor("index");
  wrap_dim(c.integer("dim"), self.dim());
  if (self.dim() != index.dim() && index.numel() > 0 && self.dim() > 0 && index.dim() > 0)
    c.error(fmt::format("index needs as many dimensions as self; got {} and {}", describe(index),
                        describe(self)));
  c.output(index.sizes(), self.dtype());
}

void gather_backward_body(Call& c) {
  const Tensor &grad = c.tensor("grad"), &self = c.tensor("self");
  const Tensor zeros = call<"new_zeros">(c.session, grad, self.sizes());
  c.result(call<"scatter_add_">(c.session, zeros, c["dim"], c["index"], grad));
}

void index_select_meta(Call& c) {
  const Tensor &self = c.tensor("self"), &index = c.tensor("index");
  if (index.dim() > 1) c.error(fmt::format("index must have one dimension, got {}", describe(index)));
  Sizes sizes = self.sizes();
  if (self.dim() > 0) sizes[size_t(wrap_dim(c.integer("dim"), self.dim()))] = index.numel();
  c.output(sizes, self.dtype());
}

void index_select_backward_body(Call& c) {
  const Tensor& grad = c.tensor("grad");
  const Tensor zeros = call<"new_zeros">(c.session, grad, c["self_sizes"], grad.dtype(), 0, grad.device());
  c.result(call<"index_add_">(c.session, zeros, c["dim"], c["index"], grad));
}

void take_along_dim_body(Call& c) {
  Session& s = c.session;
  const Tensor &self = c.tensor("self"), &indices = c.tensor("indices");
  if (!c.given("dim")) {
    const Tensor flat = view(indices, Sizes{-1});
    return c.result(gather(view(self, Sizes{-1}), 0, flat));
  }
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  Sizes of_self = self.sizes(), of_indices = indices.sizes();
  of_self[size_t(dim)] = indices.size(dim);
  const Sizes sizes = broadcast(of_self, of_indices);
  const Tensor wide_indices = call<"broadcast_to">(s, indices, sizes);
  Sizes self_sizes = sizes;
  self_sizes[size_t(dim)] = self.size(dim);
  const Tensor wide_self = call<"broadcast_to">(s, self, self_sizes);
  const Tensor wrapped = call<"remainder.Scalar">(s, wide_indices, self.size(dim));
  c.result(gather(wide_self, dim, wrapped));
}

constexpr Op kReading[] = {
    {.schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     .summary = "self at the places of index along a dimension",
     .meta = gather_meta,
     .derivatives = {{{"self"},
                      {"self", "index"},
                      [](Backward& b) {
                        return call<"gather_backward">(b.session, b.grad(), b("self"), b["dim"], b("index"),
                                                       b["sparse_grad"]);
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,5] 1 i64[2,3]"}},
    {.schema = "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
     .summary = "zeros with the gradient added at the places",
     .meta = composite(gather_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] f32[2,5] 1 i64[2,3] False"}},
    {.schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
     .summary = "slices of self at the places of index",
     .meta = index_select_meta,
     .derivatives = {{{"self"},
                      {"index"},
                      [](Backward& b) {
                        return call<"index_select_backward">(b.session, b.grad(), b.sizes("self"), b["dim"],
                                                             b("index"));
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[5,3] 0 i64[2]", "f32[5,3] 1 i64[4]"}},
    {.schema = "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
     .summary = "zeros with the gradient's slices added at the places",
     .meta = composite(index_select_backward_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,3] (5 3) 0 i64[2]"}},
    {.schema = "take(Tensor self, Tensor index) -> Tensor",
     .summary = "self, seen as one dimension, at the places of index",
     .meta = [](Call& c) { c.output(c.tensor("index").sizes(), c.tensor("self").dtype()); },
     .derivatives = {{{"self"},
                      {"self", "index"},
                      [](Backward& b) -> Gradients {
                        const Tensor zeros = zeros_like(b("self"));
                        return {call<"put_">(b.session, zeros, b("index"), b.grad(), true)};
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] i64[4]"}},
    {.schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
     .summary = "self at the places of indices, both broadcast",
     .meta = composite(take_along_dim_body),
     .derivatives = by_body,
     .flops = by_body,
     .examples = {"f32[2,5] i64[2,3] 1", "f32[2,5] i64[4]"}}};

// --- scatter and index_*: the result is a copy of self, written at some places

void new_copy_meta(Call& c) {
  const Tensor& self = c.tensor("self");
  if (c.op.schema.find(name_hash("dim")) >= 0) wrap_dim(c.integer("dim"), self.dim());
  c.output(self.sizes(), self.dtype());
}
void clone_meta(Call& c) { c.output_like(c.tensor("self")); }

Gradients zero_at_places(Backward& b) {
  return {call<"scatter.value">(b.session, b.grad(), b["dim"], b("index"), 0)};
}
Gradients at_places(Backward& b) { return {gather(b.grad(), b.integer("dim"), b("index"))}; }
Gradients same(Backward& b) { return {b.grad()}; }
Gradients filled_at_places(Backward& b) {
  return {call<"index_fill.int_Scalar">(b.session, b.grad(), b["dim"], b("index"), 0)};
}

// Slices of the gradient for the source of index_add and index_copy.
Tensor slices(Backward& b) {
  const Tensor& source = b("source");
  const int64_t dim = b.integer("dim");
  if (source.dim() == 0) return index_select(b.grad(), dim, squeeze(b("index"), 0));
  return expand(index_select(b.grad(), dim, b("index")), source.sizes());
}

FlopCount source_flops(const Call& c) {
  const int source = c.op.schema.find(name_hash("src"));
  return {.own = (source >= 0 ? c.tensor("src") : c.tensor("source")).numel()};
}

constexpr Op scatter(std::string_view schema, std::string_view node, Derivatives derivatives, FlopsRule flops,
                     std::string_view example) {
  return {.schema = schema,
          .summary = "self with elements replaced at the places of index",
          .meta = new_copy_meta,
          .derivatives = derivatives,
          .flops = flops,
          .examples = {example},
          .facts = {.node = node, .in_place_too = true}};
}

constexpr Op kScatter[] = {
    scatter("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", "ScatterBackward0",
            {{{"self"}, {"index"}, zero_at_places}, {{"src"}, {"index"}, at_places}}, free_of_flops,
            "f32[2,5] 1 i64[2,3] f32[2,3]"),
    scatter("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", "ScatterBackward1",
            {{{"self"}, {"index"}, zero_at_places}}, free_of_flops, "f32[2,5] 1 i64[2,3] 1"),
    scatter("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", {},
            not_differentiable, source_flops, "f32[2,5] 1 i64[2,3] f32[2,3] \"add\""),
    scatter("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
            {}, not_differentiable, elementwise_flops<1>, "f32[2,5] 1 i64[2,3] 2.0 \"add\""),
    {.schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     .summary = "self with src added at the places of index",
     .meta = new_copy_meta,
     .derivatives = {{{"self"}, {}, same}, {{"src"}, {"index"}, at_places}},
     .flops = source_flops,
     .examples = {"f32[2,5] 1 i64[2,3] f32[2,3]"},
     .facts = {.in_place_too = true, .autocast = Autocast::promote}}};

constexpr Op kIndexWrites[] = {
    {.schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
     .summary = "self with alpha · slices of source added at the places of index",
     .meta = new_copy_meta,
     .derivatives = {{{"self"}, {}, same},
                     {{"source"},
                      {"index", "source"},
                      [](Backward& b) -> Gradients {
                        const Tensor gradient = slices(b);
                        if (b.real("alpha") == 1) return {gradient};
                        return {gradient * b["alpha"]};
                      }}},
     .flops = source_flops,
     .examples = {"f32[5,3] 0 i64[2] f32[2,3]"},
     .facts = {.in_place_too = true}},
    {.schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
     .summary = "self with slices of source at the places of index",
     .meta = new_copy_meta,
     .derivatives = {{{"self"}, {"index"}, filled_at_places},
                     {{"source"}, {"index", "source"}, [](Backward& b) -> Gradients { return {slices(b)}; }}},
     .flops = free_of_flops,
     .examples = {"f32[5,3] 0 i64[2] f32[2,3]"},
     .facts = {.in_place_too = true}},
    {.schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     .summary = "self with one number in the slices at the places of index",
     .meta = clone_meta,
     .derivatives = {{{"self"}, {"index"}, filled_at_places}},
     .flops = free_of_flops,
     .examples = {"f32[5,3] 0 i64[2] 1.0"},
     .facts = {.in_place_too = true}},
    {.schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     .summary = "self with one number in the slices at the places of index",
     .meta = clone_meta,
     .derivatives = {{{"self"}, {"index"}, filled_at_places},
                     {{"value"},
                      {"index"},
                      [](Backward& b) -> Gradients {
                        Results unique = call_all<"_unique">(b.session, b("index"), false);
                        const Tensor filled = index_select(b.grad(), b.integer("dim"), unique[0]);
                        return {sum(filled)};
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[5,3] 0 i64[2] f32[]"},
     .facts = {.node = "IndexFillBackward1", .in_place_too = true}},
    {.schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     .summary = "self, seen as one dimension, with source at the places of index",
     .meta = clone_meta,
     .derivatives = {{{"self"},
                      {"index"},
                      [](Backward& b) -> Gradients {
                        if (b.boolean("accumulate")) return {b.grad()};
                        const TensorImpl& source = *b.shape("source");
                        const Tensor zeros =
                            call<"zeros">(b.session, source.sizes, source.dtype, Value(), source.device);
                        return {call<"put">(b.session, b.grad(), b("index"), zeros, false)};
                      }},
                     {{"source"},
                      {"index", "source"},
                      [](Backward& b) -> Gradients {
                        const Tensor taken = call<"take">(b.session, b.grad(), b("index"));
                        return {reshape(taken, b("source").sizes())};
                      }}},
     .flops = free_of_flops,
     .examples = {"f32[2,3] i64[4] f32[4]", "f32[2,3] i64[4] f32[4] True"},
     .facts = {.in_place_too = true}}};

}  // namespace

Tables scatter_operators() {
  static constexpr Records tables[] = {kReading, kScatter, kIndexWrites};
  return tables;
}

}  // namespace metaprof
