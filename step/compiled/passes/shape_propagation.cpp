// The dtype, device and number of dimensions of what calls make. A record knows how results follow from arguments
// (meta/op/record.h), so that it is asked: the call is made on stand-in tensors. Where sizes are not known, three
// stand-ins have sizes of 16, of 4 and of 1: what they agree on is taken to hold for all sizes; an operator that
// refuses one of the first two leaves its results unknown, and one whose results depend on sizes of 1 (squeeze) is
// seen by the third.

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/session/call.h"
#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

constexpr std::array<int64_t, 3> kStandIns = {16, 4, 1};

class Propagation {
 public:
  explicit Propagation(const PassContext& context) : session_(make_session(context.platform)) {
    session_->modes.grad = false;
  }

  void propagate(const Block& block) {
    for (Node* node : block.nodes()) propagate(*node);
  }

 private:
  void propagate(Node& node) {
    if (node.is(Kind::loop)) return propagate_loop(node);
    for (const auto& block : node.blocks) propagate(*block);
    if (node.is(Kind::call)) propagate_call(node);
    // As many dimensions, of the same dtype.
    if (node.is(Kind::constant_chunk)) {
      TensorDetail chunk = node.input()->type.tensor;
      chunk.sizes.clear();
      chunk.strides.reset();
      for (const auto& output : node.outputs) set(output.get(), Type(chunk));
    }
    if (node.is(Kind::branch))
      for (size_t i = 0; i < node.outputs.size(); ++i)
        set(node.output(i), common_type(node.blocks[0]->output(i)->type, node.blocks[1]->output(i)->type));
    if (node.is(Kind::list_unpack) && node.input()->node->is(Kind::list_construct) &&
        node.input()->node->inputs.size() == node.outputs.size())
      for (size_t i = 0; i < node.outputs.size(); ++i)
        set(node.output(i), node.input()->node->input(i)->type);
  }

  // Known before and behind the body.
  void propagate_loop(Node& loop) {
    Block& body = *loop.blocks[0];
    for (size_t i = 0; i < loop.outputs.size(); ++i) set(body.input(i + 1), loop.input(i + 2)->type);
    for (int round = 0; round < 2; ++round) {
      propagate(body);
      for (size_t i = 0; i < loop.outputs.size(); ++i)
        set(body.input(i + 1), common_type(body.input(i + 1)->type, body.output(i + 1)->type));
    }
    propagate(body);
    for (size_t i = 0; i < loop.outputs.size(); ++i) set(loop.output(i), body.input(i + 1)->type);
  }

  // All but whether it requires grad.
  static void set(Value* value, const Type& type) {
    if (!value->type.is_tensor() || !type.is_tensor()) return;
    const auto requires_grad = value->type.tensor.requires_grad;
    value->type.tensor = type.tensor;
    value->type.tensor.requires_grad = requires_grad;
  }

  struct Argument {
    metaprof::Value value;
    bool is_known = true;  // but for its sizes
    bool has_sizes = true;
  };

  Tensor tensor_of(const TensorDetail& detail, int64_t stand_in) {
    Sizes sizes;
    for (size_t i = 0; i < size_t(*detail.rank); ++i)
      sizes.push_back(i < detail.sizes.size() && detail.sizes[i] ? *detail.sizes[i] : stand_in);
    const Device device = detail.device == DeviceType::cuda ? kFirstGpu : kHost;
    if (detail.strides && detail.strides->size() == sizes.size())
      return session_->empty_strided(sizes, *detail.strides, *detail.dtype, device);
    return session_->empty(sizes, *detail.dtype, device);
  }

  Argument argument(const Value& value, int64_t stand_in) {
    if (value.node->is(Kind::constant)) return {.value = value.node->value("value")};
    if (value.type.is_tensor()) {
      const TensorDetail& detail = value.type.tensor;
      if (detail.defined == false) return {};
      if (!detail.dtype || !detail.rank) return {.value = {}, .is_known = false};
      const bool complete = detail.rank == 0 ||
                            (detail.sizes.size() == size_t(*detail.rank) &&
                             std::ranges::all_of(detail.sizes, [](const auto& s) { return s.has_value(); }));
      return {.value = {tensor_of(detail, stand_in)}, .is_known = true, .has_sizes = complete};
    }
    if (!value.node->is(Kind::list_construct) || !value.type.is_tensors())
      return {.value = {}, .is_known = false};
    Argument list;
    metaprof::Value::Tensors tensors;
    for (const Value* element : value.node->inputs) {
      Argument one = argument(*element, stand_in);
      list.is_known &= one.is_known && one.value.is_tensor();
      list.has_sizes &= one.has_sizes;
      if (!list.is_known) return list;
      tensors.push_back(one.value.tensor());
    }
    list.value = {std::move(tensors)};
    return list;
  }

  struct Outcome {
    bool made = false, has_sizes = true, is_known = true;
    std::vector<Tensor> results;
  };

  Outcome try_call(const Node& node, int64_t stand_in) {
    Outcome outcome;
    SmallVector<metaprof::Value, 12> given;
    for (const Value* input : node.inputs) {
      Argument one = argument(*input, stand_in);
      outcome.is_known &= one.is_known;
      outcome.has_sizes &= one.has_sizes;
      if (!outcome.is_known) return outcome;
      given.push_back(std::move(one.value));
    }
    try {
      Results results = invoke(*session_, *node.op, {given.data(), given.size()});
      for (size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
        outcome.results.push_back(results.value(i).is_tensor() ? results.value(i).tensor() : Tensor());
      outcome.made = true;
    } catch (const Error&) {  // these sizes do not fit, others may
    }
    return outcome;
  }

  void propagate_call(Node& node) {
    // What it writes may be memory of its arguments, which are stand-ins.
    std::array<Outcome, kStandIns.size()> outcomes;
    outcomes[0] = try_call(node, kStandIns[0]);
    if (!outcomes[0].made) return propagate_rank(node);
    if (!outcomes[0].has_sizes) {
      outcomes[1] = try_call(node, kStandIns[1]);
      if (!outcomes[1].made) return;
      outcomes[2] = try_call(node, kStandIns[2]);
    }
    for (size_t i = 0; i < outcomes[0].results.size(); ++i) set(node.output(i), result_type(outcomes, i));
  }

  // Where no call can be made, because sizes that are given do not fit stand-ins or the dtype is not known: how many
  // dimensions there are is known all the same.
  static void propagate_rank(Node& node) {
    static constexpr std::string_view kTakeSizes[] = {"aten::view", "aten::reshape", "aten::expand"};
    static constexpr std::string_view kKeep[] = {
        "aten::transpose.int", "aten::permute",    "aten::contiguous", "aten::softmax.int",
        "aten::layer_norm",    "aten::dropout",    "aten::batch_norm", "aten::mul.Scalar",
        "aten::div.Scalar",    "aten::add.Scalar", "aten::sub.Scalar"};
    const auto is_one_of = [&](std::span<const std::string_view> names) {
      return std::ranges::find(names, node.name) != names.end();
    };
    TensorDetail detail;
    if (is_one_of(kTakeSizes) && node.has_constant(1) && node.constant(1).kind() == Constant::Kind::integers)
      detail.rank = static_cast<int>(node.constant(1).integers().size());
    else if (is_one_of(kKeep) && node.input()->type.is_tensor())
      detail.rank = node.input()->type.tensor.rank;
    else
      return;
    detail.dtype = node.input()->type.tensor.dtype;
    detail.device = node.input()->type.tensor.device;
    detail.defined = node.input()->type.tensor.defined;
    set(node.output(), Type(detail));
  }

  Type result_type(const std::array<Outcome, kStandIns.size()>& outcomes, size_t i) {
    const Tensor& first = outcomes[0].results[i];
    TensorDetail detail;
    if (!first.defined()) return Type(detail);
    detail.dtype = first.dtype();
    detail.device = first.device().type;
    detail.rank = static_cast<int>(first.dim());
    detail.defined = true;
    if (outcomes[0].has_sizes) {
      detail.sizes.assign(first.sizes().begin(), first.sizes().end());
      detail.strides = first.strides();
      return Type(detail);
    }
    for (const Outcome& other : outcomes) {
      if (!other.made) continue;
      if (!other.results[i].defined()) return Type(TensorDetail());
      if (other.results[i].dtype() != *detail.dtype) detail.dtype.reset();
      if (other.results[i].dim() != *detail.rank) return Type(TensorDetail());
      if (!detail.dtype) return Type(TensorDetail());
    }
    return Type(detail);
  }

  std::unique_ptr<Session> session_;
};

}  // namespace

void propagate_shapes(Graph& graph, const PassContext& context) {
  Propagation(context).propagate(graph.block());
}

}  // namespace metaprof::ir
