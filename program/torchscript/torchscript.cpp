#include "program/torchscript/torchscript.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/error.h"
#include "program/torchscript/interpreter.h"
#include "program/torchscript/script_archive.h"

namespace metaprof {
namespace script {
namespace {

using ObjectRef = std::shared_ptr<Object>;
constexpr int kDeepestValues = 200;

// "__torch__.torch.nn.modules.conv.___torch_mangle_0.Conv2d" is torch.nn.modules.conv.Conv2d.
std::string plain_type(const std::string& name) {
  constexpr std::string_view kRoot = "__torch__.", kMangled = "___torch_mangle_";
  std::string type = name.starts_with(kRoot) ? name.substr(kRoot.size()) : name;
  for (size_t at = 0; (at = type.find(kMangled)) != std::string::npos;)
    type.erase(at, std::min(type.find('.', at), type.size() - 1) + 1 - at);
  return type;
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + '.' + name;
}

// The attributes of the archive's module as items: modules, parameters and buffers of the program, and plain values.
class Attributes {
  static constexpr int32_t kRoot = 0;  // the number of the archive's own module

 public:
  Attributes(const ScriptArchive& archive, nn::Recording& recording, bool training)
      : archive_(archive), recording_(recording), training_(training) {}

  Item module() { return item(archive_.module(), "", 0); }

  /// Parameters that need gradients.
  std::set<ValueId> trained() const {
    std::set<ValueId> trained;
    for (const auto& [stored, tensor] : parameters_)
      if (stored.requires_grad) trained.insert(tensor->value);
    return trained;
  }

  std::vector<Item> constants() {
    std::vector<Item> constants;
    const std::optional<PickleValue> stored = archive_.constants();
    known_.clear();  // another file, with identities of its own
    for (size_t i = 0; stored && i < stored->size(); ++i) {
      const PickleValue constant = stored->element(i);
      if (!is_stored_tensor(constant)) {
        constants.push_back(item(constant, "", 0));
        continue;
      }
      const StoredTensor tensor = stored_tensor(constant);
      if (const std::optional<double> number = archive_.number_in(tensor)) {
        constants.push_back(is_floating(tensor.dtype) ? Item(*number) : Item(static_cast<int64_t>(*number)));
      } else {
        constants.push_back(buffer(tensor, kRoot, fmt::format("CONSTANTS.c{}", i), false));
      }
    }
    return constants;
  }

 private:
  // One value that several attributes share is one item.
  Item item(const PickleValue& value, const std::string& path, int depth) {
    if (depth > kDeepestValues)
      fail("{}: attributes stand in each other more than {} deep", archive_.path(), kDeepestValues);
    if (const auto known = known_.find(value.identity()); known != known_.end()) return known->second;
    Item made = new_item(value, path, depth);
    known_.insert_or_assign(value.identity(), made);
    return made;
  }

  Item new_item(const PickleValue& value, const std::string& path, int depth) {
    switch (value.kind()) {
      case PickleKind::none: return {};
      case PickleKind::boolean: return value.integer() != 0;
      case PickleKind::integer: return value.integer();
      case PickleKind::real: return value.real();
      case PickleKind::text: return std::string(value.text());
      case PickleKind::list: return Item::list(elements(value, path, depth));
      case PickleKind::tuple: return Item::tuple(elements(value, path, depth));
      case PickleKind::dictionary: {
        auto dictionary = std::make_shared<Dictionary>();
        for (const auto& [key, entry] : value.entries())
          dictionary->entries.emplace_back(item(key, path, depth + 1), item(entry, path, depth + 1));
        return dictionary;
      }
      case PickleKind::call: return called(value, path, depth);
      case PickleKind::global: return Callable{std::string(value.text())};
      case PickleKind::persistent: break;
    }
    value.reject("an attribute");
  }

  std::vector<Item> elements(const PickleValue& list, const std::string& path, int depth) {
    std::vector<Item> items;
    for (size_t i = 0; i < list.size(); ++i)
      items.push_back(item(list.element(i), joined(path, std::to_string(i)), depth + 1));
    return items;
  }

  Item called(const PickleValue& call, const std::string& path, int depth) {
    if (is_stored_tensor(call)) return buffer(stored_tensor(call), kRoot, path, false);
    std::string name(call.element(0).text());
    if (name.starts_with("__torch__")) {
      std::ranges::replace(name, ' ', '.');
      return object(call, name, path, depth);
    }
    const PickleValue arguments = call.element(1);
    if (name == "collections OrderedDict") return std::make_shared<Dictionary>();
    if (name == "torch device")
      return arguments.element(0).text().starts_with("cuda") ? kModelDevice : Device{DeviceType::cpu};
    // build_intlist([1, 2]), restore_type_tag(value, "Dict[str, int]")
    if (name.starts_with("torch.jit._pickle ")) return item(arguments.element(0), path, depth + 1);
    call.reject("a module, a tensor or a list");
  }

  Item object(const PickleValue& call, const std::string& name, const std::string& path, int depth) {
    const auto type = archive_.code().classes.find(name);
    if (name.starts_with("__torch__.torch.classes."))
      fail("{}: {} is {}, a class of a C++ library, as quantized modules have; such models are not read",
           archive_.path(), path.empty() ? "the model" : path, plain_type(name));
    if (type == archive_.code().classes.end()) fail("{}: the code has no class {}", archive_.path(), name);
    auto object = std::make_shared<Object>();
    object->type = &type->second;
    known_.insert_or_assign(call.identity(), Item(object));
    if (type->second.is_module) object->module = recording_.add_module(path, plain_type(name));
    if (call.size() < 3) return object;
    const PickleValue state = call.element(2);
    if (state.kind() != PickleKind::dictionary)
      fail(
          "{}: {} keeps its state by __getstate__, as packed weights of quantized modules do, which is not "
          "read",
          archive_.path(), name);
    for (const auto& [key, value] : state.entries()) {
      const std::string attribute(key.text());
      object->attributes.insert_or_assign(attribute, attribute_of(*object, attribute, value, path, depth));
    }
    return object;
  }

  Item attribute_of(const Object& object, const std::string& name, const PickleValue& value,
                    const std::string& path, int depth) {
    const bool is_tensor = is_stored_tensor(value);
    if (object.type->is_module && name == "training" && value.kind() == PickleKind::boolean) return training_;
    if (!is_tensor || !object.type->is_module) {
      return item(value, joined(path, name), depth + 1);
    }
    if (const auto known = known_.find(value.identity()); known != known_.end()) return known->second;
    const StoredTensor tensor = stored_tensor(value);
    const bool is_parameter =
        std::ranges::find(object.type->parameters, name) != object.type->parameters.end();
    const bool is_buffer = std::ranges::find(object.type->buffers, name) != object.type->buffers.end();
    Item made = is_parameter ? parameter(tensor, object.module, name)
                             : buffer(tensor, object.module, name, is_buffer);
    known_.insert_or_assign(value.identity(), made);
    return made;
  }

  void check_layout(const StoredTensor& tensor, const std::string& name) {
    Sizes contiguous(tensor.sizes.size(), 1);
    for (size_t i = tensor.sizes.size(); i-- > 1;)
      if (__builtin_mul_overflow(contiguous[i], std::max<int64_t>(tensor.sizes[i], 1), &contiguous[i - 1]))
        fail("{}: {} has sizes that no tensor has", archive_.path(), name);
    for (size_t i = 0; i < tensor.sizes.size(); ++i)
      if (tensor.sizes[i] > 1 && tensor.strides[i] != contiguous[i])
        return recording_.warn(
            fmt::format("{}: {} is not contiguous in the file, and is taken to be", archive_.path(), name));
  }

  Item parameter(const StoredTensor& tensor, int32_t owner, const std::string& name) {
    check_layout(tensor, name);
    const auto same = std::ranges::find_if(parameters_, [&](const auto& known) {
      return known.first.storage == tensor.storage && known.first.offset == tensor.offset &&
             known.first.sizes == tensor.sizes && known.first.strides == tensor.strides;
    });
    if (same != parameters_.end()) {
      recording_.tie(owner, name, same->second);
      return same->second;
    }
    nn::Tensor made = recording_.parameter(owner, name, tensor.sizes, tensor.dtype, tensor.requires_grad);
    parameters_.emplace_back(tensor, made);
    return made;
  }

  Item buffer(const StoredTensor& tensor, int32_t owner, const std::string& name, bool persistent) {
    check_layout(tensor, name);
    return recording_.buffer(owner, name, tensor.sizes, tensor.dtype, persistent);
  }

  const ScriptArchive& archive_;
  nn::Recording& recording_;
  const bool training_;
  std::map<uint32_t, Item> known_;  // by identity
  std::vector<std::pair<StoredTensor, nn::Tensor>> parameters_;
};

std::string shown_input(const Parameter& parameter) {
  return fmt::format("--input {}={}", parameter.name,
                     parameter.type.text == "Tensor" ? "f32[8,3,224,224]" : "1");
}

std::vector<GivenArgument> inputs_of(const Function& forward,
                                     const std::map<std::string, ScriptInput>& inputs,
                                     nn::Recording& recording, const std::string& path) {
  std::vector<GivenArgument> given;
  std::string takes;
  for (size_t i = 1; i < forward.parameters.size(); ++i)
    takes += fmt::format("{}{}", i == 1 ? "" : ", ", forward.parameters[i].name);
  for (const auto& [name, input] : inputs)
    if (std::ranges::find(forward.parameters, name, &Parameter::name) == forward.parameters.end())
      fail("--input: {}: forward takes no '{}'; it takes {}", path, name, takes);
  for (size_t i = 1; i < forward.parameters.size(); ++i) {
    const Parameter& parameter = forward.parameters[i];
    const auto found = inputs.find(parameter.name);
    if (found == inputs.end()) {
      if (parameter.has_default) continue;
      fail("{}: forward takes {}; say what {} is: {}", path, takes, parameter.name, shown_input(parameter));
    }
    const ScriptInput& input = found->second;
    GivenArgument& argument = given.emplace_back();
    argument.name = parameter.name;
    if (input.dtype) {
      argument.item = recording.input(parameter.name, *input.dtype, input.sizes);
    } else if (input.number.kind() == Value::Kind::boolean) {
      argument.item = input.number.boolean();
    } else if (input.number.kind() == Value::Kind::integer) {
      argument.item = input.number.integer();
    } else {
      argument.item = input.number.real();
    }
  }
  return given;
}

// Tensors of what forward returns, in order. `depth`: of collections in each other.
void collect(const Item& item, const std::string& path, std::vector<nn::Tensor>& tensors, int depth = 0) {
  if (depth > kDeepestValues)
    fail("{}: forward returns collections that stand in each other more than {} deep", path, kDeepestValues);
  if (item.is_tensor()) tensors.push_back(item.as<nn::Tensor>());
  if (item.is_sequence())
    for (const Item& element : item.elements()) collect(element, path, tensors, depth + 1);
  if (item.is<std::shared_ptr<Dictionary>>())
    for (const auto& [key, value] : item.as<std::shared_ptr<Dictionary>>()->entries)
      collect(value, path, tensors, depth + 1);
}

}  // namespace
}  // namespace script

ScriptFile::ScriptFile(const std::string& path) : archive_(std::make_shared<script::ScriptArchive>(path)) {}

bool is_script_file(const std::string& path) { return script::is_script_archive(path); }

Program ScriptFile::program(const std::map<std::string, ScriptInput>& inputs, ScriptMode mode) const {
  using namespace script;
  const std::string& path = archive_->path();
  const Ref<nn::Recording> recording(new nn::Recording(std::filesystem::path(path).stem().string()));
  Attributes attributes(*archive_, *recording, mode.training);
  const Item module = attributes.module();
  if (!module.is<ObjectRef>() || !module.as<ObjectRef>()->type->is_module)
    fail("{}: holds {} and no module", path, module.kind());
  const std::vector<Item> constants = attributes.constants();
  const auto& methods = module.as<ObjectRef>()->type->methods;
  const auto forward = methods.find("forward");
  if (forward == methods.end()) fail("{}: the module has no forward", path);
  std::optional<std::set<ValueId>> trained;
  if (mode.gradients) trained = attributes.trained();
  Interpreter interpreter(archive_->code(), *recording, constants, std::move(trained), mode.condition);
  std::vector<nn::Tensor> outputs;
  collect(interpreter.call(module, "forward", inputs_of(forward->second, inputs, *recording, path)), path,
          outputs);
  Scopes scopes = interpreter.scopes();
  scopes.finish(recording->calls());
  if (outputs.empty()) fail("{}: forward returns no tensor", path);
  Program program = recording->finish({}, outputs);
  program.origin = path;
  program.training = mode.training;
  scopes.drop_values(program);
  program.followed = scopes.count();
  return program;
}

}  // namespace metaprof
