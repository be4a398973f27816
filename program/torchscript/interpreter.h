#pragma once
// Follows a method of a TorchScript module with the inputs of a call, and writes down the operators that it calls. What
// numbers decide (sizes, flags, attributes) is decided; the program has one way.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "program/nn/recording.h"
#include "program/torchscript/item.h"
#include "program/torchscript/operators.h"
#include "program/torchscript/scopes.h"

namespace metaprof::script {

class Interpreter {
 public:
  /// `constants`: CONSTANTS.cN. `trained`: parameters that need gradients; nothing: none are recorded
  /// (torch.is_grad_enabled). `condition`: what tensors say that decide. All of them outlive the interpreter.
  Interpreter(const Code& code, nn::Recording& recording, const std::vector<Item>& constants,
              std::optional<std::set<ValueId>> trained, std::optional<bool> condition)
      : code_(code),
        recording_(recording),
        constants_(constants),
        with_gradient_(std::move(trained)),
        condition_(condition) {}

  /// Errors: what the code or an operator refuses, with the line of the code; the value of a tensor decides; more than
  /// a million statements, 200,000 calls of operators, or 200 calls inside each other.
  Item call(const Item& module, const std::string& method, std::vector<GivenArgument> given);
  /// The branches and loops in which the calls were made.
  const Scopes& scopes() const { return scopes_; }

 private:
  struct Frame {
    const Function& function;
    std::map<std::string, Item> variables;
  };
  enum class Flow : uint8_t { next, returned };

  bool decides(const Item& item) const;
  void work(size_t amount);  // refuses more than there may be
  Item run(const Function& function, std::vector<GivenArgument> given);
  Flow run(const std::vector<Statement>& statements, Frame& frame, Item& result);
  Flow run(const Statement& statement, Frame& frame, Item& result);
  Flow run_branch(const Statement& statement, Frame& frame, Item& result);
  Flow run_loop(const Statement& statement, Frame& frame, Item& result);
  void use_variables(const std::vector<Statement>& statements, const Frame& frame);
  void use_variables(const Expression& expression, const Frame& frame);
  void use(const Item& item);
  void assign(const std::vector<Expression>& targets, const Item& value, Frame& frame);
  void assign(const Expression& target, const Item& value, Frame& frame);

  Item value(const Expression& expression, Frame& frame);
  std::vector<Item> values(const Expression& expression, size_t first, Frame& frame);
  Item variable(const Expression& expression, const Frame& frame) const;
  Item qualified(const Expression& expression) const;
  Item attribute(const Item& of, const std::string& name) const;
  Item call(const Expression& expression, Frame& frame);
  Item call_word(const std::string& word, const Expression& call, Frame& frame);
  Item call_named(const std::string& name, std::vector<GivenArgument> given);
  void warn_of_copied_weights(std::string_view name, const std::vector<GivenArgument>& given);
  Item call_differentiable(std::string_view name, const std::vector<GivenArgument>& given);
  Item call_method(const Item& object, const std::string& name, std::vector<GivenArgument> given);
  Item made_of_class(const Class& type, const std::vector<GivenArgument>& given);
  std::vector<GivenArgument> arguments(const Expression& call, Frame& frame);
  bool is_instance(const Item& item, const Expression& type, const Frame& frame) const;

  const Code& code_;
  nn::Recording& recording_;
  const std::vector<Item>& constants_;
  std::optional<std::set<ValueId>> with_gradient_;  // values that need one
  const std::optional<bool> condition_;
  Scopes scopes_;
  std::vector<const Object*> entered_;  // modules whose methods run
  int64_t work_ = 0;
  int depth_ = 0;
  bool warned_of_weights_ = false;
};

}  // namespace metaprof::script
