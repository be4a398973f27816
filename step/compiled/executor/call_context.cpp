#include "step/compiled/executor/call_context.h"

#include "core/error.h"
#include "meta/autograd/engine/backward.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/engine/graph_task.h"
#include "meta/autograd/graph/views.h"

namespace metaprof::ir {
namespace {

// Where a recorded call's history ends: gradients are caught before they reach it.
class Boundary final : public Node {
 public:
  explicit Boundary(Session& session) : Node(session, "Boundary", session.call) {}
  Gradients apply(Gradients& incoming) override { return incoming; }
};

// Where the backward of a recorded call begins. It gives its gradients away, so that each goes when it was used last, as
// in eager execution.
class Source final : public Node {
 public:
  explicit Source(Session& session) : Node(session, "Source", session.call) {}
  Gradients apply(Gradients&) override { return std::move(given); }
  Gradients given;
};

// A tensor of this geometry with this history and without memory: what the engine needs of a root or an input.
Tensor without_memory(const TensorImpl& geometry, const Edge& edge) {
  Tensor tensor(
      Ref<TensorImpl>(new TensorImpl(geometry.sizes, geometry.strides, geometry.dtype, geometry.device)));
  set_gradient_edge(tensor, edge);
  return tensor;
}

class CallGeometry final : public CallContext {
 public:
  CallGeometry(Session& session, const Operator& op, std::span<metaprof::Value> arguments,
               std::span<const metaprof::Value> results)
      : node_(make<OpNode>(Call{.session = session, .op = op, .arguments = arguments, .results = {}})) {
    for (size_t i = 0; i < results.size(); ++i)
      if (!(op.without_gradient >> i & 1)) add_outputs(results[i]);
    ends_ = make<Boundary>(session);
    for (const uint8_t argument : op.differentiable) add_end(arguments[argument]);
  }

  Gradients derive(Session& session, Gradients incoming, std::span<const int64_t> wants,
                   std::span<const int64_t> saves, std::span<const metaprof::Value> saved) override {
    const Operator& op = node_->op;
    for (Edge& edge : node_->next) edge = {};
    for (const int64_t argument : wants) {
      const auto [first, count] = node_->edges_of(size_t(argument));
      for (size_t e = first; e < first + count; ++e) node_->next[e] = {ends_, static_cast<uint32_t>(e)};
    }
    SmallVector<Tensor, 4> tensors;
    std::vector<std::vector<Tensor>> lists;
    tensors.resize(op.saved.size());
    for (size_t i = 0; i < saves.size(); ++i) {
      if (saved[i].is_tensors()) {
        lists.resize(op.saved.size());
        lists[size_t(saves[i])] = saved[i].tensors();
      } else {
        tensors[size_t(saves[i])] =
            saved[i].is_number() ? session.wrapped_number(saved[i]) : saved[i].tensor();
      }
    }
    return run_rows(session, incoming, tensors, lists, wants);
  }

  size_t gradients_for(size_t argument) const override { return node_->edges_of(argument).second; }

  void move_to_trace(Session& session) override {
    node_->record = static_cast<uint32_t>(session.trace.nodes.size());
    session.trace.nodes.emplace_back().name = session.trace.intern(node_->op.node_name);
    ends_->record = node_->record;
  }

 private:
  // One per edge of the node, in their order: gradients are summed to these sizes.
  void add_end(const metaprof::Value& argument) {
    const auto add = [&](const Tensor& tensor) {
      if (tensor.defined())
        ends_->add_output(tensor);
      else
        ends_->add_undefined_output();
    };
    if (!argument.is_tensors()) return add(argument.tensor());
    for (const Tensor& tensor : argument.tensors()) add(tensor);
  }

  void add_outputs(const metaprof::Value& result) {
    if (result.is_tensors()) {
      for (const Tensor& tensor : result.tensors()) node_->add_output(tensor);
    } else if (result.is_tensor()) {
      node_->add_output(result.tensor());
    } else {
      node_->add_undefined_output();
    }
  }

  // As OpNode::apply, on saved tensors that are given.
  Gradients run_rows(Session& session, Gradients& incoming, std::span<const Tensor> tensors,
                     const std::vector<std::vector<Tensor>>& lists, std::span<const int64_t> wants) {
    Gradients outgoing;
    outgoing.resize(node_->next.size());
    // The rows that are wanted follow from the graph, not from the backward that is running.
    const Scoped<GraphTask*> none(autograd_state(session).running_task, nullptr);
    Backward backward{session, *node_, incoming, tensors, lists, nullptr};
    for (const RowPlan& row : node_->op.rows) {
      bool needed = false;
      for (const uint8_t target : row.targets) {
        const auto [first, count] = node_->edges_of(target);
        for (size_t e = first; e < first + count; ++e) needed |= node_->next[e].valid();
      }
      if (!needed) continue;
      backward.row = &row;
      Gradients gradients = row.formula(backward);
      size_t given = 0;
      for (const uint8_t target : row.targets) {
        const auto [first, count] = node_->edges_of(target);
        for (size_t e = first; e < first + count && given < gradients.size(); ++e, ++given)
          if (node_->next[e].valid()) outgoing[e] = std::move(gradients[given]);
      }
    }
    fit_gradients(session, outgoing, *node_);
    Gradients wanted;
    for (const int64_t argument : wants) {
      const auto [first, count] = node_->edges_of(size_t(argument));
      for (size_t e = first; e < first + count; ++e) wanted.push_back(std::move(outgoing[e]));
    }
    return wanted;
  }

  Ref<OpNode> node_;
  Ref<Node> ends_;
};

class RecordedCall final : public CallContext {
 public:
  RecordedCall(Session& session, const Operator& op) : op_(op), boundary_(make<Boundary>(session)) {}

  // The same tensor with a history that ends here.
  metaprof::Value bounded(const metaprof::Value& argument, size_t index) {
    counts_.resize(op_.schema.arguments.size());
    if (argument.is_tensor()) {
      counts_[index] = 1;
      return metaprof::Value(bounded(argument.tensor()));
    }
    if (!argument.is_tensors()) return argument;
    metaprof::Value::Tensors tensors;
    for (const Tensor& tensor : argument.tensors()) tensors.push_back(bounded(tensor));
    counts_[index] = tensors.size();
    return metaprof::Value(std::move(tensors));
  }

  // The result without its history, which stays here.
  metaprof::Value kept(const metaprof::Value& result) {
    if (result.is_tensor()) return metaprof::Value(kept(result.tensor()));
    if (!result.is_tensors()) return result;
    metaprof::Value::Tensors tensors;
    for (const Tensor& tensor : result.tensors()) tensors.push_back(kept(tensor));
    return metaprof::Value(std::move(tensors));
  }

  Gradients derive(Session& session, Gradients incoming, std::span<const int64_t> wants,
                   std::span<const int64_t>, std::span<const metaprof::Value>) override {
    if (session.modes.grad)
      fail("{}: its second derivative is not known in graph mode: run the model eagerly", op_.name);
    const auto source = make<Source>(session);
    Geometry any;  // that the engine wants for a root and its gradient
    for (size_t i = 0; i < roots_.size(); ++i) {
      if (!roots_[i].edge.valid() || i >= incoming.size() || !incoming[i].defined()) continue;
      source->add_next(roots_[i].edge);
      source->given.push_back(std::move(incoming[i]));
      any = roots_[i].geometry;
    }
    const SmallVector<size_t, 8> places = places_of(wants);
    Gradients outgoing;
    outgoing.resize(places.size());
    if (!any.defined()) return outgoing;
    const Tensor gradient = without_memory(*any, {});
    const Tensor root = without_memory(*any, {Ref<Node>(source.get()), source->add_output(gradient)});
    std::vector<Tensor> inputs;
    std::vector<size_t> asked;
    for (size_t i = 0; i < places.size(); ++i) {
      if (!ends_[places[i]].defined()) continue;
      inputs.push_back(without_memory(*ends_[places[i]], {boundary_, static_cast<uint32_t>(places[i])}));
      asked.push_back(i);
    }
    Gradients found =
        grad(session, {&root, 1}, inputs, {&gradient, 1}, {.retain_graph = true, .allow_unused = true});
    for (size_t i = 0; i < asked.size(); ++i) outgoing[asked[i]] = std::move(found[i]);
    return outgoing;
  }

  size_t gradients_for(size_t argument) const override { return counts_[argument]; }

  void add_nodes(std::vector<uint32_t>& nodes) const override {
    for (const Root& root : roots_)
      if (root.edge.valid()) nodes.push_back(root.edge.node->record);
  }

 private:
  struct Root {
    Geometry geometry;
    Edge edge;
  };

  Tensor bounded(const Tensor& tensor) {
    if (!tensor.defined()) {
      boundary_->add_undefined_output();
      ends_.emplace_back();
      return tensor;
    }
    Tensor inner = alias(tensor);
    const uint32_t place = boundary_->add_output(inner);
    if (is_differentiable(tensor.dtype())) set_gradient_edge(inner, {boundary_, place});
    ends_.push_back(is_differentiable(tensor.dtype()) ? Geometry(inner) : Geometry());
    return inner;
  }

  Tensor kept(const Tensor& tensor) {
    if (!tensor.defined()) {
      roots_.emplace_back();
      return tensor;
    }
    roots_.push_back({Geometry(tensor), tensor.requires_grad() ? gradient_edge(tensor) : Edge()});
    return alias(tensor);
  }

  // Places among the boundary's outputs; arguments were bounded in the order of the schema.
  SmallVector<size_t, 8> places_of(std::span<const int64_t> wants) const {
    SmallVector<size_t, 8> places;
    for (const int64_t argument : wants) {
      size_t first = 0;
      for (size_t i = 0; i < size_t(argument); ++i) first += counts_[i];
      for (size_t i = 0; i < counts_[size_t(argument)]; ++i) places.push_back(first + i);
    }
    return places;
  }

  const Operator& op_;
  Ref<Node> boundary_;
  std::vector<size_t> counts_;  // per argument: tensors in it that may have gradients
  std::vector<Geometry> ends_;  // per output of the boundary
  std::vector<Root> roots_;     // per tensor of the results
};

}  // namespace

Ref<CallContext> context_of_call(Session& session, const Operator& op, std::span<metaprof::Value> arguments,
                                 std::span<const metaprof::Value> results) {
  return make<CallGeometry>(session, op, arguments, results);
}

Ref<CallContext> record_call(Session& session, const Operator& op, std::span<metaprof::Value> arguments,
                             std::span<const int64_t> wants, std::vector<metaprof::Value>& results) {
  auto recorded = make<RecordedCall>(session, op);
  for (const int64_t argument : wants)
    arguments[size_t(argument)] = recorded->bounded(arguments[size_t(argument)], size_t(argument));
  const Scoped<bool> records(session.modes.grad, true);
  Results made = invoke(session, op, arguments);
  for (metaprof::Value& value : made.list()) results.push_back(recorded->kept(value));
  return recorded;
}

metaprof::Value value_of(const Ref<CallContext>& context) {
  Tensor carrier(Ref<TensorImpl>(new TensorImpl({}, {}, DType::b8, kHost)));
  carrier->grad_fn = Ref<Counted>(context.get());
  return metaprof::Value(std::move(carrier));
}

CallContext& context_in(const metaprof::Value& value) {
  return static_cast<CallContext&>(*value.tensor()->grad_fn);
}

}  // namespace metaprof::ir
