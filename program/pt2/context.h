#pragma once
// What the parts of the .pt2 reader share while one program is read. Texts of the file that repeat (operator
// names, module and source stacks, facts of tensors, symbolic sizes) are taken apart once.
//
// Keys are views into the JSON text, escapes included, so the text must outlive the context.

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/formats/json.h"
#include "program/program.h"

namespace metaprof {

class Pt2Context {
 public:
  explicit Pt2Context(Program& program) : program(program) {}

  Program& program;
  std::optional<Device> model_device;                         ///< of the export; nothing: meta
  std::unordered_map<std::string_view, TensorFacts> tensors;  ///< that were read, by their entries' texts

  /// "torch.ops.aten.add.Tensor" → "aten::add.Tensor"
  const std::string& op_name(Json target);
  /// Index into Program::module_stacks of an nn_module_stack; -1 for an empty one.
  int32_t module_stack(Json stack);
  /// Index into Program::source_stacks of a stack_trace; -1 if there are no lines in it.
  int32_t source_stack(Json trace);
  /// Index into Program::expressions of {"expr_str": …, "hint": …}.
  int32_t expression(Json symbolic);

  void warn(const std::string& message);
  /// Only the first warning of a subject is kept.
  void warn_once(const std::string& subject, const std::string& message);

 private:
  // Numbers of texts. A text is mostly the one before: then it is compared, and not hashed.
  struct Numbered {
    std::unordered_map<std::string_view, int32_t> numbers;
    std::string_view last_text;
    int32_t* last = nullptr;

    /// The number of a text, -1 for one that is new; and whether it is.
    std::pair<int32_t&, bool> find(std::string_view text);
  };

  std::unordered_map<std::string_view, std::string> ops_;
  std::set<std::string> warned_;
  Numbered module_stacks_, source_stacks_, expressions_;
};

/// "torch.ops.aten.mm.default" → "aten::mm", "_operator.mul" → "_operator::mul"
std::string op_name_of(std::string_view target);
/// "L__self__,,zoo.Net;L__self__fc,fc,torch.nn.Linear": keys, paths and types, outermost first.
std::vector<ModuleCall> parse_module_stack(std::string_view text);
/// The lines of a Python traceback, innermost last.
std::vector<SourceLine> parse_stack_trace(std::string_view text);

/// Checkpointed regions of strict exports put their paths under this attribute.
std::string without_export_root(std::string path);

}  // namespace metaprof
