#pragma once
// The parser's part that reads values, operands and calls of one graph.

#include <map>
#include <unordered_map>

#include "program/program.h"
#include "program/text/program_line.h"

namespace metaprof {

/// What a text defines for all graphs as it goes.
struct TextTables {
  std::map<int64_t, std::shared_ptr<const Graph>> graphs;  ///< by number; null: a call has taken it
  size_t expressions = 0;                                  ///< of the program, as far as they are known
};

class TextGraph {
 public:
  explicit TextGraph(TextTables& tables) : tables_(tables) {}

  Graph graph;

  /// "%x: f32[2,3]" or "_". Errors: the graph has a value of this name.
  ValueId define(ProgramLine& line);
  /// "%x", which may have been dropped. Errors: there is no value of this name yet.
  ValueId made(ProgramLine& line) const;
  /// "%x". Errors: as made, or it has been dropped.
  ValueId use(ProgramLine& line) const;
  /// The same; the value is not there any more.
  ValueId drop(ProgramLine& line);
  /// "name=%x", "[%x, None]", "ints[%n, 4]", "graph(g0)", a constant …
  Operand operand(ProgramLine& line) const;
  /// "%y: f32[2] = aten::relu(%x)", up to the closing bracket.
  GraphNode call(ProgramLine& line);

 private:
  ValueId made(ProgramLine& line, const std::string& name) const;
  /// The value of this name; kNoValue: there is none.
  ValueId found(const std::string& name) const;
  std::optional<size_t> number_of(std::string_view name) const;
  Target target(ProgramLine& line);
  void facts(ProgramLine& line, ValueFacts& facts) const;
  TensorFacts tensor(ProgramLine& line) const;
  int64_t number(ProgramLine& line, int32_t& expression) const;
  int32_t expression(ProgramLine& line) const;
  void numbers(ProgramLine& line, char end, Sizes& numbers, std::vector<int32_t>& expressions) const;
  void operand_value(ProgramLine& line, Operand& operand) const;
  void list(ProgramLine& line, std::string_view kind, Operand& operand) const;
  void integer_list(ProgramLine& line, Operand& operand) const;

  TextTables& tables_;
  std::vector<ValueId> numbered_;                 // by the number that is the value's name
  std::unordered_map<std::string, ValueId> ids_;  // of all others
  std::vector<char> dropped_;                     // per value
};

}  // namespace metaprof
