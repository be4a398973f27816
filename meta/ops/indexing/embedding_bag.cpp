// embedding_bag: sums, means or maxima of table rows over bags of indices.

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/indexing/embedding.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/rules/elementwise.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

enum class Mode : int64_t { sum = 0, mean = 1, max = 2 };
Mode mode_of(const Call& c) { return static_cast<Mode>(c.integer("mode")); }

// The CPU keeps which bag an index is in and the sizes of bags only where they are read (native/EmbeddingBag.cpp:
// is_fast_path, make_offset2bag, make_bag_size, make_max_indices).
void host_bag_outputs(Call& c, int64_t bags, bool for_backward) {
  const Tensor &weight = c.tensor("weight"), &indices = c.tensor("indices"),
               &scale = c.tensor("per_sample_weights");
  const bool unit_strides = weight.strides()[1] == 1 && (!scale.defined() || scale.strides()[0] == 1);
  const bool sums_by_kernel = mode_of(c) == Mode::sum && c.integer("padding_idx") < 0 && unit_strides;
  const bool has_sizes = for_backward || mode_of(c) != Mode::sum;
  c.output(sums_by_kernel ? Sizes{0} : indices.sizes(), indices.dtype());
  c.output(Sizes{has_sizes ? bags : 0}, indices.dtype());
  c.output(mode_of(c) == Mode::max ? Sizes{bags, weight.size(1)} : Sizes{has_sizes ? bags : 0},
           indices.dtype());
}

// Results: the bags, the bag of each index, the size of each bag, and for `max` which rows won.
template <bool for_backward>
void bag_meta(Call& c) {
  const Tensor &weight = c.tensor("weight"), &indices = c.tensor("indices"), &offsets = c.tensor("offsets");
  if (weight.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1)
    c.error(fmt::format("expects a matrix, indices and offsets of one dimension; got {}, {}, {}",
                        describe(weight), describe(indices), describe(offsets)));
  const int64_t bags = offsets.size(0) - (c.boolean("include_last_offset") ? 1 : 0);
  c.output(Sizes{bags, weight.size(1)}, weight.dtype());
  if (!c.on_cuda()) return host_bag_outputs(c, bags, for_backward);
  c.output(indices.sizes(), indices.dtype());
  c.output(offsets.sizes(), indices.dtype());
  c.output(mode_of(c) == Mode::max ? Sizes{bags, weight.size(1)} : Sizes{0}, indices.dtype());
}

// aten/src/ATen/native/cuda/EmbeddingBag.cu: sizes, bags of indices, bags, winners.
void bag_cuda(Call& c) {
  c.allocate(2);
  c.allocate(1);
  c.allocate(0);
  c.allocate(3);
}

constexpr Op bag(std::string_view schema, Derivatives derivatives, void (*meta)(Call&) = bag_meta<true>) {
  return {.schema = schema,
          .summary = "rows of weight summed, averaged or compared per bag",
          .meta = meta,
          .host_code = {{DeviceType::cuda, bag_cuda}},
          .derivatives = derivatives,
          .flops = [](const Call& c) -> FlopCount {
            return {.own = c.tensor("indices").numel() * c.tensor("weight").size(1)};
          },
          .examples = {"f32[10,3] i64[6] i64[2]", "f32[10,3] i64[6] i64[2] False 1",
                       "f32[10,3] i64[6] i64[2] False 2"},
          .facts = {.node = "EmbeddingBagBackward0", .no_gradient_for = {"result1", "result2", "result3"}}};
}

void embedding_bag_body(Call& c) {
  const Tensor& weight = c.tensor("weight");
  const Tensor indices = contiguous(c.tensor("indices")), offsets = contiguous(c.tensor("offsets"));
  int64_t padding = -1;
  if (c.op.schema.find(name_hash("padding_idx")) >= 0 && c.given("padding_idx"))
    padding = wrap_dim(c.integer("padding_idx"), weight.size(0));
  const auto give = [&](const Results& results) {
    for (size_t i = 0; i < 4; ++i) c.result(results[i]);
  };
  if (weight.requires_grad()) {
    give(call_all<"_embedding_bag">(c.session, weight, indices, offsets, c["scale_grad_by_freq"], c["mode"],
                                    c["sparse"], c["per_sample_weights"], c["include_last_offset"], padding));
  } else {
    give(call_all<"_embedding_bag_forward_only">(c.session, weight, indices, offsets, c["scale_grad_by_freq"],
                                                 c["mode"], c["sparse"], c["per_sample_weights"],
                                                 c["include_last_offset"], padding));
  }
}

// Where forward has not kept which bag an index is in, it is found now (native/EmbeddingBag.cpp, make_offset2bag): a count
// at each offset, summed up, of one element more than there are indices.
Tensor bag_of_each_index(Call& c) {
  const Tensor &kept = c.tensor("offset2bag"), &indices = c.tensor("indices"), &offsets = c.tensor("offsets");
  if (indices.numel() == 0 || kept.numel() > 0) return kept;
  const Tensor counts =
      call<"zeros">(c.session, Sizes{indices.size(0) + 1}, offsets.dtype(), Value(), offsets.device());
  call<"index_add_">(c.session, counts, 0, offsets, call<"ones_like">(c.session, offsets));
  const Tensor sums = call<"cumsum">(c.session, counts, 0);
  return alias(sums, indices.sizes(), Sizes{1}, 0);
}

void bag_backward_body(Call& c) {
  Session& s = c.session;
  const Tensor bags = bag_of_each_index(c);
  if (c.boolean("sparse")) {
    c.result(call<"_embedding_bag_sparse_backward">(s, c["grad"], c["indices"], c["offsets"], bags,
                                                    c["bag_size"], c["num_weights"], c["scale_grad_by_freq"],
                                                    c["mode"], c["per_sample_weights"], c["padding_idx"]));
  } else {
    c.result(call<"_embedding_bag_dense_backward">(
        s, c["grad"], c["indices"], bags, c["bag_size"], c["maximum_indices"], c["num_weights"],
        c["scale_grad_by_freq"], c["mode"], c["per_sample_weights"], c["padding_idx"]));
  }
}

void bag_dense_backward_cuda(Call& c) {
  const Tensor grad = c.contiguous(c.tensor("grad"));
  const Tensor& indices = c.tensor("indices");
  if (mode_of(c) == Mode::max || indices.numel() == 0) return c.allocate(0);
  sorted_embedding_gradient(c, indices, c.boolean("scale_grad_by_freq"));
}

// A row of the gradient per index (aten/src/ATen/native/EmbeddingBag.cpp, _embedding_bag_sparse_backward).
void bag_sparse_backward_body(Call& c) {
  Session& s = c.session;
  const Tensor rows = index_select(c.tensor("grad"), 0, c.tensor("offset2bag"));
  if (mode_of(c) == Mode::mean) {
    Tensor shares;
    {
      const Tensor sizes = to(c.tensor("bag_size"), rows.dtype());
      const Tensor inverse =
          call<"empty_like">(s, sizes, Value(), Value(), Value(), Value(), MemoryFormat::preserve);
      call<"fill_.Scalar">(s, inverse, 1);
      call<"div_.Tensor">(s, inverse, sizes);
      shares = index_select(unsqueeze(inverse, 1), 0, c.tensor("offset2bag"));
    }
    call<"mul_.Tensor">(s, rows, shares);
  }
  if (c.tensor("per_sample_weights").defined())
    call<"mul_.Tensor">(s, rows, unsqueeze(c.tensor("per_sample_weights"), 1));
  c.result(call<"embedding_sparse_backward">(s, rows, c["indices"], c["num_weights"], c["padding_idx"],
                                             c["scale_grad_by_freq"]));
}

Gradients bag_weight_backward(Backward& b) {
  return {call<"_embedding_bag_backward">(b.session, b.grad(), b("indices"), b("offsets"), b("result1"),
                                          b("result2"), b("result3"), b.sizes("weight")[0],
                                          b["scale_grad_by_freq"], b["mode"], b["sparse"],
                                          b("per_sample_weights"), b["padding_idx"])};
}

Gradients bag_sample_weights_backward(Backward& b) {
  return {call<"_embedding_bag_per_sample_weights_backward">(b.session, b.grad(), b("weight"), b("indices"),
                                                             b("offsets"), b("result1"), b["mode"],
                                                             b["padding_idx"])};
}

constexpr Op kBagBackwards[] = {
    composite_of("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
                 "Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int "
                 "mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
                 "gradient of the table, dense or sparse", bag_backward_body,
                 {"f32[2,3] i64[6] i64[2] i64[6] i64[2] i64[0] 10 False 0 False None"}),
    {.schema = "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor "
               "bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, "
               "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
     .summary = "zeros of the table with the bags' gradients added to their rows",
     .meta =
         [](Call& c) {
           const Tensor& grad = c.tensor("grad");
           c.output(Sizes{c.integer("num_weights"), grad.size(-1)}, grad.dtype());
         },
     .host_code = {{DeviceType::cuda, bag_dense_backward_cuda}},
     .derivatives = {{{"grad"}, {}, not_implemented}},
     .flops = [](const Call& c) -> FlopCount {
       return {.own = multiply(c.tensor("indices").numel(), c.tensor("grad").size(-1))};
     },
     .examples = {"f32[2,3] i64[6] i64[6] i64[2] i64[0] 10 False 0 None"}},
    composite_of("_embedding_bag_sparse_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor "
                 "offset2bag, Tensor bag_size, SymInt num_weights, bool scale_grad_by_freq, int mode, "
                 "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
                 "gradient of the table as indices and rows", bag_sparse_backward_body,
                 {"f32[2,3] i64[6] i64[2] i64[6] i64[2] 10 False 0 None"}),
    {.schema = "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, "
               "Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
     .summary = "grad · weight of each index's row",
     .meta = [](Call& c) { c.output(Sizes{c.tensor("indices").size(0)}, c.tensor("grad").dtype()); },
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount {
       return {.own = multiply(2 * c.tensor("indices").numel(), c.tensor("grad").size(-1))};
     },
     .examples = {"f32[2,3] f32[10,3] i64[6] i64[2] i64[6] 0"}}};

constexpr Op kEmbeddingBag[] = {
    composite_of("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool "
                 "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
                 "bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
                 "rows of weight combined per bag", embedding_bag_body, {"f32[10,3] i64[6] i64[2]"}),
    composite_of("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
                 "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool "
                 "include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
                 "rows of weight combined per bag", embedding_bag_body,
                 {"f32[10,3] i64[6] i64[2] False 0 False None False None"}),
    bag("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
        "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
        "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        {{{"per_sample_weights"}, {"indices", "offsets", "weight", "result1"}, bag_sample_weights_backward},
         {{"weight"},
          {"indices", "offsets", "per_sample_weights", "result1", "result2", "result3"},
          bag_weight_backward}}),
    bag("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
        "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        not_differentiable, bag_meta<false>)};

}  // namespace

Tables embedding_bag_operators() {
  static constexpr Records tables[] = {kBagBackwards, kEmbeddingBag};
  return tables;
}

}  // namespace metaprof
