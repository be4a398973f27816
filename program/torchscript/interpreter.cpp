#include "program/torchscript/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/dtype.h"
#include "core/error.h"
#include "program/torchscript/builtins.h"

namespace metaprof::script {
namespace {

using Kind = Expression::Kind;
using ObjectRef = std::shared_ptr<Object>;

constexpr int64_t kMostWork = 1'000'000;  // statements that run, and elements of lists that calls look at
constexpr size_t kLettersOfAnElement = 64;
constexpr size_t kMostCalls = 200'000;  // of operators
constexpr int kDeepestCalls = 200;

// An error that already says where.
class ErrorWithPlace : public Error {
 public:
  using Error::Error;
};

// What a branch or a loop has assigned is no constant behind it.
void forget_constants(const std::vector<Statement>& statements, std::map<std::string, Item>& variables) {
  for (const Statement& statement : statements) {
    for (const Expression& target : statement.targets)
      if (const auto found = variables.find(target.text); found != variables.end())
        found->second.set_constant(false);
    forget_constants(statement.body, variables);
    forget_constants(statement.otherwise, variables);
  }
}

Item constant(Item item) {
  item.set_constant(true);
  return item;
}

bool all_constant(const std::vector<Item>& items) { return std::ranges::all_of(items, &Item::is_constant); }

// Whether torch.jit knows the result before anything runs: constants decide it, or types (x is None of a tensor).
bool is_known_early(const std::string& function, const std::vector<Item>& arguments) {
  if (function != "torch.__is__" && function != "torch.__isnot__")
    return !arguments.empty() && all_constant(arguments);
  return std::ranges::all_of(arguments,
                             [](const Item& item) { return item.is_constant() || item.is_tensor(); });
}

template <class Visit>
void each_tensor(const Item& item, Visit visit) {
  if (item.is_tensor()) visit(item.as<nn::Tensor>());
  if (item.is_sequence())
    for (const Item& element : item.elements())
      if (element.is_tensor()) visit(element.as<nn::Tensor>());
  if (item.is<std::shared_ptr<Dictionary>>())
    for (const std::pair<Item, Item>& entry : item.as<std::shared_ptr<Dictionary>>()->entries)
      if (entry.second.is_tensor()) visit(entry.second.as<nn::Tensor>());
}

bool needs_gradient(const Item& item, const std::optional<std::set<ValueId>>& with_gradient) {
  bool needs = false;
  if (with_gradient)
    each_tensor(item,
                [&](const nn::Tensor& tensor) { needs = needs || with_gradient->contains(tensor->value); });
  return needs;
}

Device device_named(const std::string& name) {
  if (name.starts_with("cuda")) return kModelDevice;
  if (name == "cpu") return {DeviceType::cpu};
  fail("there is no device '{}'", name);
}

}  // namespace

void Interpreter::work(size_t amount) {
  work_ += static_cast<int64_t>(amount);
  if (work_ > kMostWork) fail("more than {} statements run: does a loop not end?", kMostWork);
}

// ---- functions

Item Interpreter::call(const Item& module, const std::string& method, std::vector<GivenArgument> given) {
  return call_method(module, method, std::move(given));
}

Item Interpreter::run(const Function& function, std::vector<GivenArgument> given) {
  if (depth_ == kDeepestCalls) fail("more than {} calls inside each other", kDeepestCalls);
  ++depth_;
  Frame frame{function, {}};
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].name.empty() && i >= function.parameters.size())
      fail("{} takes {} arguments, got {}", function.name, function.parameters.size(), given.size());
    const std::string& name = given[i].name.empty() ? function.parameters[i].name : given[i].name;
    frame.variables.insert_or_assign(name, std::move(given[i].item));
  }
  for (const Parameter& parameter : function.parameters) {
    if (frame.variables.contains(parameter.name)) continue;
    if (!parameter.has_default) fail("{}: the argument {} is missing", function.name, parameter.name);
    frame.variables.emplace(parameter.name, value(parameter.default_value, frame));
  }
  Item result;
  run(function.body, frame, result);
  --depth_;
  return result;
}

Interpreter::Flow Interpreter::run(const std::vector<Statement>& statements, Frame& frame, Item& result) {
  for (const Statement& statement : statements) {
    try {
      if (run(statement, frame, result) == Flow::returned) return Flow::returned;
    } catch (const ErrorWithPlace&) {
      throw;
    } catch (const Error& error) {
      throw ErrorWithPlace(fmt::format("{}:{}: {}", frame.function.file, statement.line, error.what()));
    }
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Statement& statement, Frame& frame, Item& result) {
  work(1);
  switch (statement.kind) {
    case Statement::Kind::pass: return Flow::next;
    case Statement::Kind::expression: value(statement.value, frame); return Flow::next;
    case Statement::Kind::assignment:
      assign(statement.targets, value(statement.value, frame), frame);
      return Flow::next;
    case Statement::Kind::branch: return run_branch(statement, frame, result);
    case Statement::Kind::while_loop:
    case Statement::Kind::for_loop: return run_loop(statement, frame, result);
    case Statement::Kind::return_value: result = value(statement.value, frame); return Flow::returned;
  }
  return Flow::next;
}

bool Interpreter::decides(const Item& item) const {
  return item.is_tensor() && condition_ ? *condition_ : truth(item);
}

// A branch that constants decide is gone before the graph runs.
Interpreter::Flow Interpreter::run_branch(const Statement& statement, Frame& frame, Item& result) {
  const Item condition = value(statement.value, frame);
  const std::vector<Statement>& taken = decides(condition) ? statement.body : statement.otherwise;
  if (condition.is_constant()) return run(taken, frame, result);
  scopes_.enter(recording_.calls());
  const Flow way = run(taken, frame, result);
  scopes_.leave(recording_.calls());
  result.set_constant(false);
  forget_constants(taken, frame.variables);
  use_variables(&taken == &statement.body ? statement.otherwise : statement.body, frame);
  return way;
}

// In the graph a branch that is not taken uses its variables, too.
void Interpreter::use_variables(const std::vector<Statement>& statements, const Frame& frame) {
  for (const Statement& statement : statements) {
    work(1);
    use_variables(statement.value, frame);
    use_variables(statement.body, frame);
    use_variables(statement.otherwise, frame);
  }
}

void Interpreter::use_variables(const Expression& expression, const Frame& frame) {
  if (expression.kind == Kind::variable) {
    if (const auto found = frame.variables.find(expression.text); found != frame.variables.end())
      use(found->second);
  }
  for (const Expression& part : expression.parts) use_variables(part, frame);
}

void Interpreter::use(const Item& item) {
  if (item.is_sequence()) work(item.elements().size());
  each_tensor(item, [&](const nn::Tensor& tensor) { scopes_.use(tensor->value, recording_.calls()); });
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement, Frame& frame, Item& result) {
  if (statement.kind == Statement::Kind::while_loop) {
    scopes_.enter(recording_.calls());
    Flow way = Flow::next;
    while (way == Flow::next && decides(value(statement.value, frame))) {
      work(1);
      way = run(statement.body, frame, result);
      forget_constants(statement.body, frame.variables);
    }
    scopes_.leave(recording_.calls());
    return way;
  }
  const Expression& range = statement.value;
  if (range.kind != Kind::call || range.parts[0].text != "range" || range.parts.size() != 2)
    fail("a loop over something else than range(n)");
  const int64_t times = as_integer(value(range.parts[1], frame)).integer();
  scopes_.enter(recording_.calls());
  Flow way = Flow::next;
  for (int64_t i = 0; i < times && way == Flow::next; ++i) {
    work(1);
    assign(statement.targets[0], i, frame);
    way = run(statement.body, frame, result);
    forget_constants(statement.body, frame.variables);
  }
  scopes_.leave(recording_.calls());
  return way;
}

void Interpreter::assign(const std::vector<Expression>& targets, const Item& value, Frame& frame) {
  if (targets.size() == 1) return assign(targets[0], value, frame);
  if (!value.is_sequence() || value.elements().size() != targets.size())
    fail("{} cannot be taken apart into {} values", value.kind(), targets.size());
  use(value);
  const std::vector<Item>& elements = value.elements();
  for (size_t i = 0; i < targets.size(); ++i) assign(targets[i], elements[i], frame);
}

void Interpreter::assign(const Expression& target, const Item& assigned, Frame& frame) {
  if (target.kind == Kind::variable) {
    frame.variables.insert_or_assign(target.text, assigned);
    return;
  }
  if (target.kind != Kind::attribute) fail("an assignment to what is no variable");
  const Item object = value(target.parts[0], frame);
  if (!object.is<ObjectRef>()) fail("{} has no attributes that can be set", object.kind());
  object.as<ObjectRef>()->attributes.insert_or_assign(target.text, assigned);
}

// ---- expressions

Item Interpreter::value(const Expression& expression, Frame& frame) {
  switch (expression.kind) {
    case Kind::none: return constant({});
    case Kind::boolean: return constant(expression.integer != 0);
    case Kind::integer: return constant(expression.integer);
    case Kind::real: return constant(expression.real);
    case Kind::text: return constant(expression.text);
    case Kind::variable: return variable(expression, frame);
    case Kind::qualified: return qualified(expression);
    case Kind::attribute: {
      const Item of = value(expression.parts[0], frame);
      use(of);
      return attribute(of, expression.text);
    }
    case Kind::subscript: {
      if (expression.parts.size() != 2) fail("a subscript of several indices");
      const std::vector<Item> parts = values(expression, 0, frame);
      Item element = element_of(parts[0], parts[1]);
      use(parts[0]);
      element.set_constant(all_constant(parts));
      return element;
    }
    case Kind::call: return call(expression, frame);
    case Kind::list: {
      const std::vector<Item> elements = values(expression, 0, frame);
      Item list = Item::list(elements);
      list.set_constant(all_constant(elements));
      return list;
    }
    case Kind::tuple: return Item::tuple(values(expression, 0, frame));
    case Kind::dictionary: {
      auto dictionary = std::make_shared<Dictionary>();
      const std::vector<Item> all = values(expression, 0, frame);
      for (size_t i = 0; i + 1 < all.size(); i += 2) dictionary->entries.emplace_back(all[i], all[i + 1]);
      return dictionary;
    }
  }
  return {};
}

std::vector<Item> Interpreter::values(const Expression& expression, size_t first, Frame& frame) {
  std::vector<Item> items;
  for (size_t i = first; i < expression.parts.size(); ++i) items.push_back(value(expression.parts[i], frame));
  return items;
}

Item Interpreter::variable(const Expression& expression, const Frame& frame) const {
  const auto found = frame.variables.find(expression.text);
  if (found == frame.variables.end()) fail("'{}' has no value here", expression.text);
  return found->second;
}

// torch.add, __torch__.models.f, CONSTANTS.c0, and attributes of classes: __torch__.models.Mode.fast
Item Interpreter::qualified(const Expression& expression) const {
  constexpr std::string_view kConstant = "CONSTANTS.c";
  const std::string& name = expression.text;
  if (!name.starts_with(kConstant)) return Callable{name};
  size_t at = 0;
  const auto [end, error] = std::from_chars(name.data() + kConstant.size(), name.data() + name.size(), at);
  if (error != std::errc() || end != name.data() + name.size() || at >= constants_.size())
    fail("the archive has no {}", name);
  return constants_[at];
}

Item Interpreter::attribute(const Item& of, const std::string& name) const {
  if (of.is_sequence() && of.as<Item::List>()->type) {
    const std::vector<std::string>& fields = of.as<Item::List>()->type->fields;
    const auto found = std::ranges::find(fields, name);
    if (found != fields.end()) return of.elements()[static_cast<size_t>(found - fields.begin())];
  }
  if (!of.is<ObjectRef>()) fail("{} has no attribute '{}'", of.kind(), name);
  const Object& object = *of.as<ObjectRef>();
  if (const auto found = object.attributes.find(name); found != object.attributes.end()) return found->second;
  fail("{} has no attribute '{}'", object.type->name, name);
}

// ---- calls

Item Interpreter::call(const Expression& expression, Frame& frame) {
  const Expression& callee = expression.parts[0];
  if (callee.kind == Kind::qualified) return call_named(callee.text, arguments(expression, frame));
  if (callee.kind == Kind::attribute) {
    const Item object = value(callee.parts[0], frame);
    return call_method(object, callee.text, arguments(expression, frame));
  }
  if (callee.kind != Kind::variable) fail("a call of what is no function");
  const auto found = frame.variables.find(callee.text);
  if (found == frame.variables.end()) return call_word(callee.text, expression, frame);
  if (!found->second.is<Callable>()) fail("'{}' is {}, and is called", callee.text, found->second.kind());
  const std::string name = found->second.as<Callable>().name;
  return call_named(name, arguments(expression, frame));
}

// Words of Python, and of TorchScript for types.
Item Interpreter::call_word(const std::string& word, const Expression& call, Frame& frame) {
  const size_t count = call.parts.size() - 1;
  if (word == "uninitialized") return constant({});
  if (count == 2 && (word == "annotate" || word == "unchecked_cast")) return value(call.parts[2], frame);
  if (count == 2 && word == "isinstance")
    return constant(is_instance(value(call.parts[1], frame), call.parts[2], frame));
  if (count == 2 && word == "getattr")
    return attribute(value(call.parts[1], frame), value(call.parts[2], frame).text());
  if (count == 1 && word == "int") return as_integer(value(call.parts[1], frame));
  if (count == 1 && word == "float") return as_real(value(call.parts[1], frame));
  if (count == 1 && word == "bool") return decides(value(call.parts[1], frame));
  if (count == 1 && word == "str") return value(call.parts[1], frame).text();
  fail("'{}' is no function that is known here", word);
}

Item Interpreter::call_named(const std::string& name, std::vector<GivenArgument> given) {
  if (const auto function = code_.functions.find(name); function != code_.functions.end())
    return run(function->second, std::move(given));
  if (const auto type = code_.classes.find(name); type != code_.classes.end())
    return made_of_class(type->second, given);
  constexpr std::string_view kNew = ".__new__";
  if (name.ends_with(kNew)) {
    const auto type = code_.classes.find(name.substr(0, name.size() - kNew.size()));
    if (type != code_.classes.end()) return made_of_class(type->second, {});
  }
  if (name == "torch.is_grad_enabled") return with_gradient_.has_value();
  if (name == "ops.prim.requires_grad" && given.size() == 1)
    return needs_gradient(given[0].item, with_gradient_);
  if (name == "torch.device" && given.size() == 1) return device_named(given[0].item.text());
  std::vector<Item> items;
  items.reserve(given.size());
  for (const GivenArgument& argument : given) items.push_back(argument.item);
  if (std::optional<Item> result = call_builtin(name, items)) {
    result->set_constant(is_known_early(name, items));
    if (result->is_sequence()) work(result->elements().size());
    if (result->is<std::string>()) work(result->as<std::string>().size() / kLettersOfAnElement);
    if (!result->is_constant()) std::ranges::for_each(items, [&](const Item& item) { use(item); });
    return *result;
  }
  constexpr std::string_view kOperators = "torch.";
  if (!name.starts_with(kOperators)) fail("'{}' is no function that is known here", name);
  return call_differentiable(name.substr(kOperators.size()), given);
}

// torch.jit.load gives each weight a memory of its own (aten/src/ATen/native/cudnn/RNN.cpp wants one for all).
void Interpreter::warn_of_copied_weights(std::string_view name, const std::vector<GivenArgument>& given) {
  constexpr std::array<std::string_view, 4> kRecurrent = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
  if (warned_of_weights_ || std::ranges::find(kRecurrent, name) == kRecurrent.end()) return;
  warned_of_weights_ = true;
  int64_t bytes = 0;
  for (const GivenArgument& argument : given)
    if (argument.item.is_sequence())
      each_tensor(argument.item, [&](const nn::Tensor& tensor) {
        if (tensor->is_input) bytes += tensor->geometry.numel() * element_size(tensor.dtype().dtype);
      });
  recording_.warn(fmt::format(
      "a loaded archive copies the weights of a recurrent network together in each call ({} bytes "
      "in {}), which is not modeled: flatten_parameters() after loading avoids it",
      bytes, name));
}

Item Interpreter::call_differentiable(std::string_view name, const std::vector<GivenArgument>& given) {
  if (recording_.calls() == kMostCalls)
    fail("more than {} calls of operators: does a loop not end?", kMostCalls);
  Item result = call_operator(recording_, name, given);
  warn_of_copied_weights(name, given);
  if (std::ranges::any_of(given, [&](const auto& each) { return needs_gradient(each.item, with_gradient_); }))
    each_tensor(result, [&](const nn::Tensor& tensor) {
      if (is_differentiable(tensor.dtype().dtype)) with_gradient_->insert(tensor->value);
    });
  return result;
}

Item Interpreter::call_method(const Item& object, const std::string& name, std::vector<GivenArgument> given) {
  if (!object.is<ObjectRef>()) fail("{} has no method '{}'", object.kind(), name);
  const ObjectRef& self = object.as<ObjectRef>();
  const auto method = self->type->methods.find(name);
  if (method == self->type->methods.end()) fail("{} has no method '{}'", self->type->name, name);
  given.insert(given.begin(), GivenArgument{"", object});
  const bool enters = self->module >= 0 && (entered_.empty() || entered_.back() != self.get());
  if (!enters) return run(method->second, std::move(given));
  entered_.push_back(self.get());
  recording_.enter(self->module);
  Item result = run(method->second, std::move(given));
  recording_.leave();
  entered_.pop_back();
  return result;
}

Item Interpreter::made_of_class(const Class& type, const std::vector<GivenArgument>& given) {
  if (!type.is_tuple) {
    auto object = std::make_shared<Object>();
    object->type = &type;
    return object;
  }
  std::vector<Item> elements(type.fields.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto named = std::ranges::find(type.fields, given[i].name);
    const size_t at = given[i].name.empty() ? i : static_cast<size_t>(named - type.fields.begin());
    if (at >= elements.size()) fail("{} has {} fields", type.name, elements.size());
    elements[at] = given[i].item;
  }
  return Item::tuple(std::move(elements), &type);
}

std::vector<GivenArgument> Interpreter::arguments(const Expression& call, Frame& frame) {
  std::vector<GivenArgument> given;
  for (size_t i = 1; i < call.parts.size(); ++i)
    given.push_back({call.keywords[i], value(call.parts[i], frame)});
  return given;
}

bool Interpreter::is_instance(const Item& item, const Expression& type, const Frame& frame) const {
  if (type.kind == Kind::list || type.kind == Kind::tuple)
    return std::ranges::any_of(type.parts,
                               [&](const Expression& one) { return is_instance(item, one, frame); });
  const std::string& name = type.kind == Kind::subscript ? type.parts[0].text : type.text;
  if (name == "Tensor") return item.is_tensor();
  if (name == "int") return item.is_integer();
  if (name == "float") return item.is<double>();
  if (name == "bool") return item.is<bool>();
  if (name == "str") return item.is<std::string>();
  if (name == "NoneType" || type.kind == Kind::none) return item.is_none();
  if (name == "List") return item.is_sequence() && !item.as<Item::List>()->is_tuple;
  if (name == "Tuple") return item.is_sequence() && item.as<Item::List>()->is_tuple;
  if (name == "Dict") return item.is<std::shared_ptr<Dictionary>>();
  return item.is<ObjectRef>() && item.as<ObjectRef>()->type->name == name;
}

}  // namespace metaprof::script
