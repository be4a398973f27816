#pragma once
// What a call leaves for its derivative besides tensors: the geometry of its arguments and results, and its plain
// values. Formulas of records run on it (meta/op/record.h), so that an operator's derivative stands once, for eager
// execution and for graphs.
//
// A context travels among the values of a graph as a tensor without memory (Type::Kind::context).

#include "meta/autograd/engine/op_node.h"

namespace metaprof::ir {

class CallContext : public Counted {
 public:
  /// Gradients of the arguments `wants` (indices of the schema; a list's are together), from those of the results.
  /// `saved`: the tensors that `saves` names by their index into Operator::saved.
  virtual Gradients derive(Session& session, Gradients incoming, std::span<const int64_t> wants,
                           std::span<const int64_t> saves, std::span<const metaprof::Value> saved) = 0;
  /// How many gradients `derive` gives for an argument.
  virtual size_t gradients_for(size_t argument) const = 0;
  /// Nodes of autograd that it keeps alive, as indices into Trace::nodes: what they save is kept through it.
  virtual void add_nodes(std::vector<uint32_t>&) const {}
  /// It was made while the session wrote another trace, of which nothing is left.
  virtual void move_to_trace(Session&) {}
};

/// Of a call that has been made, for an operator with derivative rows.
Ref<CallContext> context_of_call(Session& session, const Operator& op, std::span<metaprof::Value> arguments,
                                 std::span<const metaprof::Value> results);

/// Makes a call whose operator has a body instead of rows: autograd records it, from tensors without history.
/// `wants`: the arguments that need gradients. The results have no history.
Ref<CallContext> record_call(Session& session, const Operator& op, std::span<metaprof::Value> arguments,
                             std::span<const int64_t> wants, std::vector<metaprof::Value>& results);

metaprof::Value value_of(const Ref<CallContext>& context);
CallContext& context_in(const metaprof::Value& value);

}  // namespace metaprof::ir
