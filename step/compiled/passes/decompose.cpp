// Calls become several, of which kernels can be fused and products batched (torch/csrc/jit/passes/decompose_ops.cpp,
// 2.11): a product with a sum in it, and on a device normalization, whose statistics are a call of their own.

#include <optional>

#include "step/compiled/passes/pass.h"

namespace metaprof::ir {
namespace {

// Writes calls before a node.
class Writer {
 public:
  Writer(Node* place, const Registry& registry) : place_(place), registry_(registry) {}

  Value* constant(const Constant& value) { return add(place_->owner().create_constant(value))->output(); }
  Node* call_all(std::string_view op, const std::vector<Value*>& given) {
    return add(place_->owner().create_call(*registry_.find(op), given));
  }
  Value* call(std::string_view op, const std::vector<Value*>& given) { return call_all(op, given)->output(); }
  Value* sum(Value* a, Value* b) { return call("aten::add.Tensor", {a, b, constant(1)}); }
  Value* difference(Value* a, Value* b) { return call("aten::sub.Tensor", {a, b, constant(1)}); }
  Value* product(Value* a, Value* b) { return call("aten::mul.Tensor", {a, b}); }
  Value* reshape(Value* tensor, const Sizes& sizes) {
    return call("aten::reshape", {tensor, constant(sizes)});
  }
  /// `result` takes the place of the call's.
  void finish(Value* result) {
    result->type = place_->output()->type;
    result->name = place_->output()->name;
    place_->output()->replace_with(result);
    place_->destroy();
  }

 private:
  Node* add(Node* node) {
    node->scope = place_->scope;
    node->move_before(place_);
    return node;
  }

  Node* place_;
  const Registry& registry_;
};

bool is_one(const Node& node, size_t i) {
  return node.has_constant(i) && node.constant(i).is_number() && node.constant(i).real() == 1;
}

bool is_defined(const Value& value) { return value.type.kind != Type::Kind::none; }

bool is_on_device(const Value& value) {
  const TensorDetail& tensor = value.type.tensor;
  return tensor.device == DeviceType::cuda && tensor.rank;
}

// addmm(c, a, b)
void write_product_and_sum(Node* node, Writer writer) {
  Value* product = writer.call("aten::mm", {node->input(1), node->input(2)});
  product->type = node->output()->type;
  writer.finish(writer.sum(node->input(0), product));
}

// batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled) in evaluation
void write_batch_norm(Node* node, Writer writer) {
  Value* input = node->input(0);
  Sizes per_channel(static_cast<size_t>(*input->type.tensor.rank), 1);
  per_channel[1] = -1;
  Value* mean = writer.reshape(node->input(3), per_channel);
  Value* variance = writer.reshape(node->input(4), per_channel);
  Value* spread = writer.call("aten::add.Scalar", {variance, node->input(7), writer.constant(1)});
  Value* inverse = writer.call("aten::reciprocal", {writer.call("aten::sqrt", {spread})});
  Value* one = writer.constant(1);
  inverse = writer.call("aten::mul.Scalar", {inverse, one});
  Value* result = writer.product(writer.difference(input, mean), inverse);
  if (is_defined(*node->input(1)))
    result = writer.product(result, writer.reshape(node->input(1), per_channel));
  if (is_defined(*node->input(2))) result = writer.sum(result, writer.reshape(node->input(2), per_channel));
  writer.finish(result);
}

// How many numbers a row has; nothing: no tensor has such rows, which the operator says.
std::optional<int64_t> length_of_rows(const Sizes& shape) {
  int64_t length = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(length, size, &length)) return std::nullopt;
  return length;
}

bool has_rank(const Value& value, size_t least) {
  return value.type.tensor.rank && static_cast<size_t>(*value.type.tensor.rank) >= least;
}

bool has_channels(const Node& node) {
  return is_on_device(*node.input(0)) && has_rank(*node.input(0), 2) && node.has_constant(5) &&
         !node.constant(5).boolean();
}

bool has_rows(const Node& node) {
  if (!is_on_device(*node.input(0)) || !node.has_constant(1)) return false;
  const Sizes& shape = node.constant(1).integers();
  return has_rank(*node.input(0), shape.size()) && length_of_rows(shape);
}

// layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable): rows are the channels of its statistics.
void write_layer_norm(Node* node, Writer writer) {
  Value* input = node->input(0);
  const Sizes& shape = node->constant(1).integers();
  const int64_t length = *length_of_rows(shape);
  Value* rows = writer.reshape(writer.call("aten::contiguous", {input, writer.constant(0)}), {1, -1, length});
  Sizes per_row(static_cast<size_t>(*input->type.tensor.rank), 1);
  const Node* statistics = writer.call_all("aten::batch_norm_stats", {rows, node->input(4)});
  std::vector<Value*> views;
  for (const auto& statistic : statistics->outputs) {
    Node* sizes = node->owner().create(Kind::list_construct);
    for (size_t dim = 0; dim < per_row.size(); ++dim) {
      if (dim + shape.size() >= per_row.size()) {
        sizes->add_input(writer.constant(1));
        continue;
      }
      Node* size = node->owner().create(Kind::number, {input, writer.constant(dim)});
      size->name = "aten::size.int";
      size->move_before(node);
      sizes->add_input(size->add_output(Type::Kind::integer));
    }
    sizes->move_before(node);
    views.push_back(writer.call("aten::reshape", {statistic.get(), sizes->add_output(Type::Kind::integers)}));
  }
  Value* result = writer.product(writer.difference(input, views[0]), views[1]);
  if (is_defined(*node->input(2))) result = writer.product(result, node->input(2));
  if (is_defined(*node->input(3))) result = writer.sum(result, node->input(3));
  writer.finish(result);
}

}  // namespace

void decompose(Graph& graph, const PassContext& context) {
  std::vector<Node*> nodes;
  collect_nodes(graph.block(), nodes);
  bool changed = false;
  for (Node* node : nodes) {
    if (!node->is(Kind::call)) continue;
    const Writer writer(node, context.registry);
    if (node->name == "aten::addmm" && is_one(*node, 3) && is_one(*node, 4))
      write_product_and_sum(node, writer);
    else if (node->name == "aten::batch_norm" && has_channels(*node))
      write_batch_norm(node, writer);
    else if (node->name == "aten::layer_norm" && has_rows(*node))
      write_layer_norm(node, writer);
    else
      continue;
    changed = true;
  }
  if (changed) propagate_shapes(graph, context);
}

}  // namespace metaprof::ir
