#pragma once
// A program while it is being written down: inputs, modules, calls, and which values go after which call.
// Geometry comes from the operators' own records: every call runs on tensors without data in a session of the
// recording's, whose trace nobody reads.

#include <memory>
#include <string>
#include <vector>

#include "meta/session/session.h"
#include "program/nn/tensor.h"

namespace metaprof::nn {

class Recording final : public Counted {
 public:
  explicit Recording(std::string name);
  ~Recording() override;

  /// A module by its path ("" is the model) and its type, for reports. Returns its number. Modules are added in
  /// the order in which the framework would register them.
  int32_t add_module(std::string path, std::string type);
  const std::string& path(int32_t module) const { return program_.modules[static_cast<size_t>(module)]; }

  /// State of a module. Errors: a module has two of one name; the bytes exceed 64 bits.
  Tensor parameter(int32_t module, std::string_view name, Sizes sizes, DType dtype, bool trains);
  Tensor buffer(int32_t module, std::string_view name, Sizes sizes, DType dtype, bool persistent);
  /// The module's parameters do not train.
  void freeze(int32_t module);
  /// A second name of a parameter.
  void tie(int32_t module, std::string_view name, const Tensor& parameter);
  Tensor input(std::string name, DType dtype, Sizes sizes);

  /// Calls in between are the module's.
  void enter(int32_t module);
  void leave();
  /// Whether autocast is off for calls from here on.
  bool without_autocast = false;

  std::vector<Tensor> call(std::string_view op, std::span<Argument> given);
  /// How many calls there are so far.
  size_t calls() const { return program_.graph.nodes.size(); }

  /// The last handle of a value has gone.
  void dropped(ValueId value);
  void warn(std::string warning) { program_.warnings.push_back(std::move(warning)); }

  /// The program; nothing can be recorded afterwards. `loss` undefined: the outputs are all there is.
  Program finish(const Tensor& loss, const std::vector<Tensor>& outputs);

 private:
  /// A new value with this geometry.
  Tensor handle(metaprof::Tensor geometry, bool is_input);
  Tensor add_input(ProgramInput input, int32_t module, const Sizes& sizes, DType dtype, bool trains);
  std::string name_in(int32_t module, std::string_view name) const;
  Operand operand(const Argument& argument, const std::string& name) const;
  Value value(const Argument& argument) const;
  void write_node(const Operator& op, std::span<const Argument> given, Target target);
  void sort_inputs();

  Program program_;
  std::unique_ptr<Session> session_;
  std::vector<int32_t> module_of_input_;  // per program input; one behind the last module: none
  std::vector<int32_t> entered_;          // module stacks around the next call: indices, innermost last
  std::vector<int32_t> calls_of_module_;  // per module: how often it was entered
  bool finished_ = false;
};

}  // namespace metaprof::nn
