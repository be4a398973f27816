#pragma once
// Arguments and results of the calls of a .pt2 graph.

#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// The values of a graph by name while it is read. Sub-graphs have scopes of their own.
class Pt2Scope {
 public:
  explicit Pt2Scope(Graph& graph) : graph_(graph) {}

  void reserve(size_t values);  ///< so many are expected
  /// A new value, named by a JSON string; an Error if the name is taken.
  ValueId define(Json name, bool is_tensor);
  /// The value of that name; an Error if nothing defined it before, or if it is not of the kind asked for.
  ValueId use_tensor(Json name) const { return use(name, true); }
  ValueId use_number(Json name) const { return use(name, false); }
  /// The same; kNoValue if there is none.
  ValueId find(std::string_view raw_name) const;
  /// Whether `tensor_values` must say something of it.
  bool is_tensor(ValueId value) const { return is_tensor_[static_cast<size_t>(value)]; }

 private:
  ValueId use(Json name, bool is_tensor) const;

  Graph& graph_;
  std::unordered_map<std::string_view, ValueId> ids_;
  std::vector<char> is_tensor_;
};

/// An argument: an object of one key, which names its kind. Sub-graphs (as_graph) and kinds that are not
/// known here come back as Kind::unknown with the kind's name.
Operand read_operand(Json argument, const Pt2Scope& scope, const Pt2Context& context);

/// A result of a call; defines its values.
Target read_target(Json result, Pt2Scope& scope);

}  // namespace metaprof
