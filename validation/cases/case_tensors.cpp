#include "validation/cases/case_tensors.h"

#include <algorithm>

#include "core/error.h"
#include "validation/cases/recorded_argument.h"

namespace metaprof {
namespace {

int64_t key_of(const RecordedTensor& recorded) {
  return recorded.parts.empty() ? recorded.storage : recorded.parts[1].storage;
}

bool same_numbers(const RecordedTensor& a, const RecordedTensor& b) {
  return key_of(a) == key_of(b) && a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides &&
         a.offset == b.offset && a.layout == b.layout;
}

// Python numbers arrive at an operator as host tensors of these types.
bool is_wrapped_number(const RecordedTensor& recorded) {
  const DType t = recorded.dtype;
  return recorded.on_host && recorded.sizes.empty() &&
         (t == DType::i64 || t == DType::f64 || t == DType::b8 || t == DType::c128);
}

void flatten(const RecordedValue& value, std::vector<const RecordedTensor*>& out) {
  if (value.kind == RecordedValue::Kind::none) out.push_back(nullptr);
  for (const RecordedTensor& tensor : value.tensor) out.push_back(&tensor);
  for (const RecordedValue& element : value.list) flatten(element, out);
}

}  // namespace

void CaseTensors::note_span(const RecordedTensor& recorded) {
  for (const RecordedTensor& part : recorded.parts) note_span(part);
  if (recorded.storage == 0) return;
  const int64_t bytes =
      multiply(recorded.offset + span_of(recorded.sizes, recorded.strides), element_size(recorded.dtype));
  int64_t& span = spans_[recorded.storage];
  span = std::max(span, bytes);
}

Ref<Storage> CaseTensors::storage_for(const RecordedTensor& recorded) {
  const Device device = recorded.on_host ? kHost : gpu_;
  if (recorded.storage == 0) return session_.allocate(device, 0);
  Ref<Storage>& storage = made_[recorded.storage];
  if (!storage) {
    note_span(recorded);
    storage = session_.allocate(device, spans_[recorded.storage]);
    hidden_.insert(storage->id);
    map_.match(recorded.storage, storage->id);
  }
  return storage;
}

Tensor CaseTensors::make(const RecordedTensor& recorded) {
  const Device device = recorded.on_host ? kHost : gpu_;
  Tensor tensor(new TensorImpl(recorded.sizes, recorded.strides, recorded.dtype, device));
  tensor->offset = recorded.offset;
  tensor->requires_grad = recorded.requires_grad;
  if (recorded.parts.empty()) {
    tensor->storage = storage_for(recorded);
    return tensor;
  }
  tensor->layout = Layout::sparse;
  for (const RecordedTensor& part : recorded.parts) tensor->ensure_extra().parts.push_back(make(part));
  return tensor;
}

void CaseTensors::hold(const RecordedTensor& recorded, const Tensor& tensor, bool input) {
  held_.push_back({recorded, tensor, input});
}

void CaseTensors::make_inputs() {
  std::unordered_set<int64_t> introduced;
  for (const LogLine& line : case_.forward)
    if (line.kind == LogLine::Kind::request) introduced.insert(line.block);
  for (const NamedTensor& named : case_.inputs)
    for_each_tensor(named.value, [&](const RecordedTensor& tensor) { note_span(tensor); });

  // Deep inside, a storage may be seen as a whole: the flat weights of a recurrent network.
  for (const LogLine& line : case_.forward)
    if (line.kind == LogLine::Kind::end)
      for (const RecordedValue& value : parse_values(line.text))
        for_each_tensor(value, [&](const RecordedTensor& tensor) {
          if (spans_.contains(tensor.storage)) note_span(tensor);
        });

  // Two inputs with one text are one tensor, unless both have a gradient of their own.
  auto has_gradient = [&](const std::string& name) {
    return std::any_of(case_.gradients.begin(), case_.gradients.end(),
                       [&](const NamedTensor& gradient) { return gradient.name == name; });
  };
  for (const NamedTensor& named : case_.inputs) {
    if (named.value.kind != RecordedValue::Kind::tensor) continue;
    const RecordedTensor& recorded = named.value.tensor[0];
    Tensor tensor;
    if (!(recorded.requires_grad && has_gradient(named.name))) tensor = find(recorded);
    // Without memory, tensors are told apart by nothing else.
    if (tensor.defined() && recorded.storage == 0 && tensor.requires_grad() != recorded.requires_grad)
      tensor.reset();
    if (!tensor.defined()) {
      tensor = make(recorded);
      hold(recorded, tensor, true);
    }
    inputs_.emplace_back(named.name, tensor);
  }
  for (const auto& [name, tensor] : inputs_) {
    if (!name.ends_with(".grad")) continue;
    const Tensor owner = input(std::string_view(name).substr(0, name.size() - 5));
    if (owner.defined() && owner.requires_grad()) owner->ensure_extra().grad = tensor;
  }
  // What is there without an input line: an optimizer's state, a module's constants.
  for (const LogLine& line : case_.forward) {
    if (line.kind != LogLine::Kind::begin || line.depth > 1) continue;
    for (const RecordedValue& value : parse_values(line.text))
      for_each_tensor(value, [&](const RecordedTensor& tensor) {
        if (tensor.on_host || tensor.storage == 0 || introduced.contains(tensor.storage)) return;
        if (!tensor.layout.empty() || find(tensor).defined()) return;
        note_span(tensor);
      });
  }
}

Tensor CaseTensors::input(std::string_view name) const {
  for (const auto& [known, tensor] : inputs_)
    if (known == name) return tensor;
  return {};
}

Tensor CaseTensors::find(const RecordedTensor& recorded) const {
  Tensor close, closer;
  for (size_t i = held_.size(); i-- > 0;) {
    const auto held = held_.begin() + static_cast<std::ptrdiff_t>(i);
    if (key_of(held->recorded) != key_of(recorded)) continue;
    if (same_geometry(recorded, held->tensor)) {
      if (held->tensor.requires_grad() == recorded.requires_grad) return held->tensor;
      if (!closer.defined()) closer = held->tensor;
    } else if (same_numbers(recorded, held->recorded) && !close.defined()) {
      close = held->tensor;
    }
  }
  return closer.defined() ? closer : close;
}

void CaseTensors::find_outputs() {
  outputs_.clear();
  for (size_t i = 0; i < case_.outputs.size(); ++i) {
    const RecordedValue& value = case_.outputs[i].value;
    if (value.kind != RecordedValue::Kind::tensor) {
      outputs_.emplace_back();
      continue;
    }
    const RecordedTensor& wanted = value.tensor[0];
    // Outputs of one text are different tensors in the order in which they were made, as far as there are so
    // many.
    std::vector<Tensor> candidates;
    for (const Held& held : held_)
      if (same_numbers(wanted, held.recorded) && same_geometry(wanted, held.tensor) &&
          std::find(candidates.begin(), candidates.end(), held.tensor) == candidates.end())
        candidates.push_back(held.tensor);
    size_t before = 0, all = 0;
    for (size_t k = 0; k < case_.outputs.size(); ++k) {
      const RecordedValue& other = case_.outputs[k].value;
      if (other.tensor.empty() || !same_numbers(wanted, other.tensor[0])) continue;
      ++all;
      before += k < i;
    }
    const bool many = all > 1 && candidates.size() >= all;
    outputs_.push_back(many ? candidates[candidates.size() - all + before] : find(wanted));
  }
}

// Tensors of the same text, the latest first, each once.
std::vector<Tensor> CaseTensors::all_like(const RecordedTensor& recorded) const {
  std::vector<Tensor> out;
  for (size_t i = held_.size(); i-- > 0;) {
    const Held& held = held_[i];
    if (key_of(held.recorded) == key_of(recorded) && same_geometry(recorded, held.tensor) &&
        held.tensor.requires_grad() == recorded.requires_grad &&
        std::find(out.begin(), out.end(), held.tensor) == out.end())
      out.push_back(held.tensor);
  }
  return out;
}

Tensor CaseTensors::choose(const RecordedTensor& recorded, Tensor found) {
  const std::vector<Tensor> all = all_like(recorded);
  if (all.size() < 2) return found;
  if (choice_ == kInOrder) {
    auto of_this = [&](const std::vector<const RecordedTensor*>& list) {
      return size_t(std::count_if(list.begin(), list.end(), [&](const RecordedTensor* other) {
        return same_numbers(*other, recorded);
      }));
    };
    const size_t wanted = of_this(wanted_), before = of_this(chosen_);
    return wanted > 1 && wanted <= all.size() ? all[wanted - 1 - before] : found;
  }
  for (const Tensor& other : all)
    if (other != found && ++ambiguous_ == choice_) return other;
  return found;
}

Tensor CaseTensors::tensor_argument(const RecordedTensor& recorded) {
  Tensor found = find(recorded);
  if (found.defined()) {
    found = choose(recorded, found);
    chosen_.push_back(&recorded);
    // Python's requires_grad_() leaves no line.
    if (recorded.requires_grad && !found.requires_grad()) found->requires_grad = true;
    return found;
  }
  // Another view of a known storage, made without a line (x.data).
  if (recorded.storage != 0 && recorded.parts.empty()) {
    for (size_t i = held_.size(); i-- > 0;) {
      const auto held = held_.begin() + static_cast<std::ptrdiff_t>(i);
      if (key_of(held->recorded) != recorded.storage || held->tensor.is_sparse()) continue;
      found = alias(held->tensor, recorded.sizes, recorded.strides, recorded.offset);
      found->dtype = recorded.dtype;
      found->requires_grad = recorded.requires_grad;
      break;
    }
  }
  if (!found.defined()) {
    found = make(recorded);
    found->wrapped_number = is_wrapped_number(recorded);
  }
  hold(recorded, found, false);
  return found;
}

std::vector<Value> CaseTensors::arguments(const Operator& op, const std::vector<RecordedValue>& inputs) {
  if (inputs.size() > op.schema.arguments.size())
    fail("the recording gives {} arguments, the record's schema has {}", inputs.size(),
         op.schema.arguments.size());
  chosen_.clear();
  wanted_.clear();
  for (const RecordedValue& value : inputs)
    for_each_tensor(value, [&](const RecordedTensor& tensor) { wanted_.push_back(&tensor); });
  std::vector<Value> arguments;
  for (size_t i = 0; i < inputs.size(); ++i)
    arguments.push_back(
        recorded_argument(op.schema.arguments[i], inputs[i], gpu_,
                          [this](const RecordedTensor& tensor) { return tensor_argument(tensor); }));
  return arguments;
}

void CaseTensors::bind(ResultList& results, const std::vector<RecordedValue>& outputs) {
  std::vector<const RecordedTensor*> recorded;
  for (const RecordedValue& value : outputs) flatten(value, recorded);
  std::vector<Tensor> ours;
  for (const Value& value : results) {
    if (value.is_tensor() || value.is_none()) ours.push_back(value.tensor());
    if (value.is_tensors()) ours.insert(ours.end(), value.tensors().begin(), value.tensors().end());
  }
  for (size_t i = 0; i < recorded.size() && i < ours.size(); ++i) {
    if (!recorded[i] || !ours[i].defined()) continue;
    same_tensor(*recorded[i], ours[i], map_);
    hold(*recorded[i], ours[i], false);
  }
}

void CaseTensors::release(int64_t storage) {
  std::erase_if(held_, [&](const Held& held) { return !held.input && key_of(held.recorded) == storage; });
}

void CaseTensors::release_unused() {
  std::unordered_set<int64_t> freed;
  for (const LogLine& line : case_.backward)
    if (line.kind == LogLine::Kind::give_back) freed.insert(line.block);
  find_outputs();
  auto is_output = [&](const Held& held) {
    return std::find(outputs_.begin(), outputs_.end(), held.tensor) != outputs_.end();
  };
  std::vector<Held> kept;
  for (const Held& held : held_)
    if (held.input || !freed.contains(key_of(held.recorded)) || is_output(held)) kept.push_back(held);
  held_ = std::move(kept);
}

}  // namespace metaprof
