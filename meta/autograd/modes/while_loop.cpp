#include <algorithm>

#include "meta/autograd/graph/views.h"
#include "meta/autograd/modes/joint_function.h"
#include "meta/autograd/modes/loops.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

using Values = std::vector<Value>;

// Inputs of a trip: what the one before gave, and what all of them take.
Values with_carried(const Values& inputs, const Values& carried) {
  Values given = inputs;
  std::ranges::copy(carried, given.begin());
  return given;
}

Values carried_in(const WhileLoop& loop, const Values& inputs) {
  return {inputs.begin(), inputs.begin() + ptrdiff_t(loop.carried)};
}

// What a trip takes lives until the next one is over, and what the condition gave until `finish` has run, which makes the
// result of what the last one gave.
template <class Note, class Finish>
Values run_trips(const WhileLoop& loop, const Values& inputs, const Note& note, const Finish& finish) {
  Values given = inputs, condition = loop.condition(given);
  Values carried = carried_in(loop, given);
  for (int64_t trip = 0; trip < loop.trips; ++trip) {
    carried = loop.body(given);
    note(carried);
    given = with_carried(inputs, carried);
    condition = loop.condition(given);
  }
  return finish(carried);
}

Values run_plain(Session& session, const WhileLoop& loop, const Values& inputs) {
  const auto finish = [&](Values carried) {
    if (loop.trips > 0) return carried;
    for (Value& value : carried)
      if (value.is_tensor()) value = Value(call<"clone">(session, value.tensor()));
    return carried;
  };
  return run_trips(
      loop, inputs, [](const Values&) {}, finish);
}

// What every trip gives, a tensor for all of them; without trips, what the first one would take.
Values run_stacked(Session& session, const WhileLoop& loop, const Values& inputs) {
  std::vector<Values> trips;
  const auto finish = [&](const Values& carried) {
    if (!trips.empty()) return stacked(session, trips);
    Values results;
    for (const Value& value : carried)
      results.emplace_back(call<"clone">(session, call<"unsqueeze">(session, value.tensor(), 0)));
    return results;
  };
  return run_trips(
      loop, inputs, [&](const Values& given) { trips.push_back(given); }, finish);
}

// It holds what the trips gave, and its inputs, as long as it lives: not as saved tensors.
class WhileLoopFunction final : public Node {
 public:
  WhileLoopFunction(Session& session, const WhileLoop& loop, const Values& inputs)
      : Node(session, "WhileLoopAutogradOpBackward", session.call),
        loop_(loop),
        before_{session.modes, session.module},
        inputs_(inputs) {
    for (const Value& value : inputs_) add_next(value.is_tensor() ? gradient_edge(value.tensor()) : Edge());
    record_edges();
  }

  // The forward: what the last trip gave.
  Values run(const Values& inputs) {
    stacked_ = run_stacked(session, loop_, inputs);
    Values last;
    for (const Value& value : stacked_) last.push_back(slice_of(session, value, -1));
    return last;
  }

  // A loop again: over what the trips took, the last one first. It carries gradients of what the trips carried, and sums
  // of those of the other inputs; those of tensors that have none are left out.
  Gradients apply(Gradients& incoming) override {
    materialise(incoming);
    Values carried;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!has_gradient(i)) continue;
      carried.emplace_back(i < loop_.carried ? incoming[i]
                                             : call<"zeros_like">(session, inputs_[i].tensor()));
    }
    const Values taken = taken_by_trips();
    Values arguments = carried;
    arguments.insert(arguments.end(), taken.begin(), taken.end());
    arguments.insert(arguments.end(), inputs_.begin() + ptrdiff_t(loop_.carried), inputs_.end());
    const std::vector<Tensor> traced = tensors_in(arguments);
    trace_on_copies(session, traced);  // the condition of the loop
    trace_on_copies(session, traced);
    for (int64_t trip = slices_of(taken) - 1; trip >= 0; --trip)
      carried = gradients_of_trip(taken, trip, carried);
    return as_gradients(carried);
  }

 private:
  bool has_gradient(size_t i) const {
    return inputs_[i].is_tensor() && is_floating(inputs_[i].tensor().dtype());
  }

  Values taken_by_trips() {
    Values taken;
    for (size_t i = 0; i < loop_.carried; ++i) {
      const Tensor first = call<"unsqueeze">(session, inputs_[i].tensor(), 0);
      const Tensor others = call<"slice.Tensor">(session, stacked_[i].tensor(), 0, Value(), -1);
      taken.emplace_back(call<"cat">(session, Value(Value::Tensors{first, others}), 0));
    }
    return taken;
  }

  Values gradients_of_trip(const Values& taken, int64_t trip, const Values& carried) {
    Values given = inputs_;
    std::vector<Tensor> incoming(loop_.carried);
    size_t next = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is_tensor()) continue;
      const bool requires_grad = given[i].tensor().requires_grad();
      given[i] = i < loop_.carried ? slice_of(session, taken[i], trip) : Value(alias(given[i].tensor()));
      given[i].tensor()->requires_grad = requires_grad;
      if (i < loop_.carried && has_gradient(i)) incoming[i] = carried[next++].tensor();
    }
    Gradients found = gradients_of_part(session, before_, loop_.body, given, incoming);
    Values result;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!has_gradient(i)) continue;
      if (i >= loop_.carried) found[i] = call<"add.Tensor">(session, found[i], carried[next++].tensor());
      result.emplace_back(std::move(found[i]));
    }
    return result;
  }

  Gradients as_gradients(const Values& carried) const {
    Gradients outgoing;
    size_t next = 0;
    for (size_t i = 0; i < inputs_.size(); ++i)
      outgoing.push_back(has_gradient(i) ? carried[next++].tensor() : Tensor());
    return outgoing;
  }

  WhileLoop loop_;
  Surroundings before_;
  Values inputs_, stacked_;
};

}  // namespace

std::vector<Value> while_loop(Session& session, const WhileLoop& loop, const std::vector<Value>& inputs) {
  if (!needs_gradients(session, inputs)) return run_plain(session, loop, inputs);
  const auto node = make<WhileLoopFunction>(session, loop, inputs);
  return run_as_function(
      session, node, [&](const Values& given) { return node->run(given); }, inputs);
}

}  // namespace metaprof
