#include "program/pt2/argument.h"

#include <fmt/format.h>

#include "program/pt2/numbers.h"

namespace metaprof {
namespace {

Operand constant(Value value) {
  Operand operand;
  operand.constant = std::move(value);
  return operand;
}

Operand one_value(ValueId value) {
  Operand operand;
  operand.kind = Operand::Kind::value;
  operand.value = value;
  return operand;
}

Operand list_of(Operand::Kind kind) {
  Operand operand;
  operand.kind = kind;
  return operand;
}

Operand unknown(std::string_view kind) {
  Operand operand;
  operand.kind = Operand::Kind::unknown;
  operand.text = kind;
  return operand;
}

Value list_of_integers(Json list) {
  Sizes integers;
  list.for_each([&](Json element) { integers.push_back(element.integer()); });
  return integers;
}

Value list_of_reals(Json list) {
  Value::Reals reals;
  list.for_each([&](Json element) { reals.push_back(element.real()); });
  return reals;
}

Value list_of_booleans(Json list) {
  Value::Booleans booleans;
  list.for_each([&](Json element) { booleans.push_back(element.boolean()); });
  return booleans;
}

Value device(Json json, const Pt2Context& context) {
  const auto device = read_device(json);
  return !device || device == context.model_device ? kModelDevice : *device;
}

// {"as_name": "sym_size"}, or {"as_int": 3} and its like for what turned out to be constant.
Operand symbolic(Json json, const Pt2Scope& scope) {
  const auto [kind, value] = json.only_member();
  if (kind == "as_name") return one_value(scope.use_number(value));
  if (kind == "as_int") return constant(value.integer());
  if (kind == "as_bool") return constant(value.boolean());
  if (kind == "as_float") return constant(value.real());
  return unknown(kind);
}

Operand symbolic_integers(Json list, const Pt2Scope& scope) {
  Operand operand = list_of(Operand::Kind::integers);
  list.for_each([&](Json element) {
    const Operand number = symbolic(element, scope);
    if (number.kind == Operand::Kind::unknown) element.reject("expected an integer or a name");
    operand.values.push_back(number.value);
    operand.numbers.push_back(number.value == kNoValue ? number.constant.integer() : 0);
  });
  return operand;
}

Operand tensors(Json list, const Pt2Scope& scope) {
  Operand operand = list_of(Operand::Kind::values);
  list.for_each([&](Json element) { operand.values.push_back(scope.use_tensor(element.at("name"))); });
  return operand;
}

// {"as_tensor": {"name": …}} or {"as_none": …}
ValueId optional_tensor(Json json, const Pt2Scope& scope) {
  const auto [kind, value] = json.only_member();
  if (kind == "as_none") return kNoValue;
  if (kind != "as_tensor") json.reject(fmt::format("expected a tensor or none, got {}", kind));
  return scope.use_tensor(value.at("name"));
}

Operand optional_tensors(Json list, const Pt2Scope& scope) {
  Operand operand = list_of(Operand::Kind::values);
  list.for_each([&](Json element) { operand.values.push_back(optional_tensor(element, scope)); });
  return operand;
}

}  // namespace

void Pt2Scope::reserve(size_t values) {
  ids_.reserve(values);
  graph_.values.reserve(values);
  is_tensor_.reserve(values);
}

ValueId Pt2Scope::define(Json name, bool is_tensor) {
  const auto id = static_cast<ValueId>(graph_.values.size());
  if (!ids_.emplace(name.raw_string(), id).second)
    name.reject(fmt::format("the value '{}' is defined twice", name.raw_string()));
  graph_.values.emplace_back().name = name.string();
  is_tensor_.push_back(is_tensor);
  return id;
}

ValueId Pt2Scope::find(std::string_view raw_name) const {
  const auto found = ids_.find(raw_name);
  return found == ids_.end() ? kNoValue : found->second;
}

ValueId Pt2Scope::use(Json name, bool is_tensor) const {
  const ValueId id = find(name.raw_string());
  if (id == kNoValue)
    name.reject(fmt::format("the value '{}' is used, but no input and no earlier call defines it",
                            name.raw_string()));
  if (this->is_tensor(id) != is_tensor)
    name.reject(fmt::format("the value '{}' is {} here, but was defined as {}", name.raw_string(),
                            is_tensor ? "a tensor" : "a number", is_tensor ? "a number" : "a tensor"));
  return id;
}

Operand read_operand(Json argument, const Pt2Scope& scope, const Pt2Context& context) {
  const auto [kind, value] = argument.only_member();
  if (kind == "as_tensor") return one_value(scope.use_tensor(value.at("name")));
  if (kind == "as_int") return constant(value.integer());
  if (kind == "as_ints") return constant(list_of_integers(value));
  if (kind == "as_float") return constant(value.real());
  if (kind == "as_bool") return constant(value.boolean());
  if (kind == "as_none") return constant(nullptr);
  if (kind == "as_scalar_type") return constant(read_dtype(value));
  if (kind == "as_device") return constant(device(value, context));
  if (kind == "as_layout") return constant(read_layout(value));
  if (kind == "as_memory_format") return constant(read_memory_format(value));
  if (kind == "as_string") return constant(value.string());
  if (kind == "as_floats") return constant(list_of_reals(value));
  if (kind == "as_bools") return constant(list_of_booleans(value));
  if (kind == "as_complex") return constant(Value::complex(value.at("real").real(), value.at("imag").real()));
  if (kind == "as_tensors") return tensors(value, scope);
  if (kind == "as_optional_tensors") return optional_tensors(value, scope);
  if (kind == "as_optional_tensor") {
    const ValueId id = optional_tensor(value, scope);
    return id == kNoValue ? constant(nullptr) : one_value(id);
  }
  if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") return symbolic(value, scope);
  if (kind == "as_sym_ints" || kind == "as_sym_bools") return symbolic_integers(value, scope);
  return unknown(kind);
}

Target read_target(Json result, Pt2Scope& scope) {
  const auto [kind, value] = result.only_member();
  Target target;
  if (kind == "as_tensor") {
    target.values.push_back(scope.define(value.at("name"), true));
  } else if (kind == "as_tensors") {
    target.list = true;
    value.for_each([&](Json element) { target.values.push_back(scope.define(element.at("name"), true)); });
  } else if (kind == "as_optional_tensors") {
    target.list = true;
    value.for_each([&](Json element) {
      const auto [element_kind, tensor] = element.only_member();
      target.values.push_back(element_kind == "as_none" ? kNoValue : scope.define(tensor.at("name"), true));
    });
  } else if (kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float") {
    const auto [form, name] = value.only_member();
    target.values.push_back(form == "as_name" ? scope.define(name, false) : kNoValue);
  } else {
    target.values.push_back(kNoValue);  // None, or a constant that nothing can refer to
  }
  return target;
}

}  // namespace metaprof
