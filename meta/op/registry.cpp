#include "meta/op/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>

#include "core/error.h"
#include "meta/op/takes.h"

namespace metaprof {
namespace {

std::vector<Slot>& slot_list() {
  static std::vector<Slot> slots;  // filled before main begins, then only read
  return slots;
}

std::string full_name(const Slot& slot) {
  const bool spelled_out = slot.name.find("::") != std::string_view::npos;
  return spelled_out ? std::string(slot.name) : "aten::" + std::string(slot.name);
}

// "native_layer_norm" → "NativeLayerNorm", "_log_softmax" → "LogSoftmax", "add_" → "Add", "log1p" → "Log1P":
// the framework's names.
std::string camel_case(std::string_view name) {
  std::string out;
  bool upper = true;
  for (char c : name) {
    if (c == '_') {
      upper = true;
    } else {
      out += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = !std::isalpha(c);
    }
  }
  return out;
}

// "add.Tensor(Tensor self, …) -> Tensor" → "add_.Tensor(Tensor(a!) self, …) -> Tensor(a!)"
Schema in_place_schema(Schema schema) {
  schema.name += '_';
  Argument& self = schema.arguments.front();
  self.alias = self.written = true;
  self.alias_set = 'a';
  if (self.list) {  // "_foreach_add_(Tensor(a!)[] self, …) -> ()"
    schema.returns.clear();
    return schema;
  }
  Argument& result = schema.returns.front();
  result.alias = result.written = true;
  result.alias_set = 'a';
  return schema;
}

// An argument is kept only for the row that reads it, where that can be told from one edge
// (tools/autograd/gen_variable_type.py, guard_for).
int8_t guard_for(const Operator& op, int argument) {
  const Schema& schema = op.schema;
  for (const Argument& a : schema.arguments)
    if (a.is_tensors()) return -1;
  if (schema.name.find("backward") != std::string::npos) return -1;
  size_t targets = 0;
  for (const Derivatives::Row& row : op.record.derivatives.rows()) targets += row.of.size();
  if (targets <= 1) return -1;
  if (schema.arguments[size_t(argument)].optional) return -1;
  const Derivatives::Row* reader = nullptr;
  const std::vector<Derivatives::Row> rows = op.record.derivatives.rows();
  for (const Derivatives::Row& row : rows) {
    for (Name name : row.reads) {
      if (name.hash != schema.arguments[size_t(argument)].hash) continue;
      if (reader) return -1;
      reader = &row;
    }
  }
  if (!reader || reader->of.size() != 1) return -1;
  return static_cast<int8_t>(schema.find(reader->of[0].hash));
}

// Written tensors that are returned, and lists that are written (those operators return nothing).
SmallVector<uint8_t, 4> rewritten_arguments(const Schema& schema) {
  SmallVector<uint8_t, 4> indices;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const Argument& argument = schema.arguments[i];
    if (!argument.written) continue;
    bool returned = argument.list || schema.returns.empty();
    for (const Argument& result : schema.returns) returned |= result.alias_set == argument.alias_set;
    if (returned) indices.push_back(static_cast<uint8_t>(i));
  }
  return indices;
}

size_t plan_saved(Operator& op, Name name) {
  SavedPlan plan;
  int index = op.schema.find(name.hash);
  if (index < 0) {
    index = op.schema.find_return(name.hash);
    plan.result = true;
  }
  if (index < 0)
    fail("record of {}: a formula reads '{}', which is neither argument nor result", op.name, name.text);
  plan.index = static_cast<uint8_t>(index);
  for (size_t i = 0; i < op.saved.size(); ++i)
    if (op.saved[i].result == plan.result && op.saved[i].index == plan.index) return i;
  if (!plan.result)
    plan.guard = op.record.facts.keeps_for_others ? SavedPlan::kForOthers : guard_for(op, index);
  op.saved.push_back(plan);
  return op.saved.size() - 1;
}

uint32_t without_gradient(const Operator& op) {
  uint32_t results = 0;
  for (Name name : op.record.facts.no_gradient_for) {
    const int index = op.schema.find_return(name.hash);
    if (index < 0) fail("record of {}: no gradient for '{}', which is no result", op.name, name.text);
    results |= uint32_t{1} << index;
  }
  return results;
}

// What a node saves is let go of in the order of its C++ members: arguments by name, then results by name
// (recorded: `shapes/order`).
void plan_all_saved(Operator& op) {
  std::vector<Name> reads;
  for (const Derivatives::Row& row : op.record.derivatives.rows())
    reads.insert(reads.end(), row.reads.begin(), row.reads.end());
  auto key = [&](Name name) { return std::pair(op.schema.find(name.hash) < 0, name.text); };
  std::sort(reads.begin(), reads.end(), [&](Name a, Name b) { return key(a) < key(b); });
  for (Name name : reads) plan_saved(op, name);
}

void plan_derivatives(Operator& op) {
  plan_all_saved(op);
  std::vector<Derivatives::Row> rows = op.record.derivatives.rows();
  // Formulas run by the (first) target's name, in alphabetical order.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.of.front().text < b.of.front().text; });
  std::vector<uint8_t> differentiable;
  for (const Derivatives::Row& row : rows) {
    RowPlan plan;
    plan.formula = row.formula.run;
    for (Name name : row.of) {
      const int index = op.schema.find(name.hash);
      if (index < 0) fail("record of {}: a derivative of '{}', which is no argument", op.name, name.text);
      plan.targets.push_back(static_cast<uint8_t>(index));
      differentiable.push_back(static_cast<uint8_t>(index));
    }
    for (Name name : row.reads) plan.saved.push_back(static_cast<uint8_t>(plan_saved(op, name)));
    op.rows.push_back(std::move(plan));
  }
  std::sort(differentiable.begin(), differentiable.end());
  op.differentiable.append(differentiable.begin(), differentiable.end());
}

}  // namespace

Gradients Formula::only_gradient(Tensor gradient) {
  Gradients gradients;
  gradients.push_back(std::move(gradient));
  return gradients;
}

uint32_t register_slot(Slot slot) {
  slot_list().push_back(slot);
  return static_cast<uint32_t>(slot_list().size() - 1);
}

const std::vector<Slot>& slots() { return slot_list(); }

namespace {

// A name as its record has it, in pieces: "add.Tensor(Tensor self, …) -> Tensor", in place → "aten::", "add", "_", ".Tensor".
using NameInPieces = std::array<std::string_view, 4>;

NameInPieces name_in(std::string_view schema, bool in_place) {
  const std::string_view name = schema.substr(0, schema.find('('));
  const size_t dot = std::min(name.find('.'), name.size());
  return {name.find("::") == name.npos ? "aten::" : "", name.substr(0, dot), in_place ? "_" : "",
          name.substr(dot)};
}

// FNV-1a.
uint32_t hash_of(std::span<const std::string_view> pieces) {
  uint32_t hash = 2166136261;
  for (const std::string_view piece : pieces)
    for (const char c : piece) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  return hash;
}

bool is_name(std::string_view name, const NameInPieces& pieces) {
  for (const std::string_view piece : pieces) {
    if (!name.starts_with(piece)) return false;
    name.remove_prefix(piece.size());
  }
  return name.empty();
}

std::unique_ptr<Operator> make_operator(const Op& record, bool in_place, uint32_t id) {
  auto op = std::make_unique<Operator>(record);
  op->schema = parse_schema(op->record.schema);
  if (in_place) op->schema = in_place_schema(std::move(op->schema));
  op->in_place = in_place;
  op->name = op->schema.full_name();
  op->id = id;
  const std::string base = op->schema.name.substr(op->schema.name.find("::") + 2);
  op->node_name =
      op->record.facts.node.empty() ? camel_case(base) + "Backward0" : std::string(op->record.facts.node);
  uint8_t tensors = 0, others = 0;
  for (const Argument& argument : op->schema.arguments) {
    op->writes |= argument.written;
    op->place.push_back(argument.is_tensor() ? tensors++ : others++);
  }
  ParsedTakes takes = parse_takes(op->schema, op->record.facts.takes);
  op->takes.kinds = std::move(takes.kinds);
  if (!takes.beyond_schema.all.empty())
    op->takes.beyond_schema = std::make_shared<const Requirements>(std::move(takes.beyond_schema));
  if (!op->record.facts.writes_no_data) op->rewritten = rewritten_arguments(op->schema);
  for (const HostCode& code : op->record.host_code) op->host_code[static_cast<int>(code.device)] = code.run;
  op->without_gradient = without_gradient(*op);
  plan_derivatives(*op);
  return op;
}

}  // namespace

Registry::Registry(std::span<const Records> tables, FrameworkVersion version) : by_slot_(slots().size()) {
  for (Records records : tables) {
    for (const Op& record : records) {
      if (!record.facts.versions.holds(version)) continue;
      if (record.facts.in_place_too) entries_.push_back({&record, true});
      entries_.push_back({&record, false});
    }
  }
  index_names();
  operators_.resize(entries_.size());
  by_id_ = std::vector<std::atomic<const Operator*>>(entries_.size());
}

namespace {

// Where the operator of a name is in a table of hashes, or would be. `name` gives the name, where hashes are equal.
template <class Places, class Entries, class Name>
size_t place_of(const Places& places, const Entries& entries, uint32_t hash, Name name) {
  size_t at = hash & (places.size() - 1);
  for (; places[at].id_and_one != 0; at = (at + 1) & (places.size() - 1)) {
    if (places[at].hash != hash) continue;
    const auto& entry = entries[places[at].id_and_one - 1];
    if (is_name(name(), name_in(entry.record->schema, entry.in_place))) break;
  }
  return at;
}

}  // namespace

void Registry::index_names() {
  by_name_.resize(std::bit_ceil(2 * entries_.size() + 1));
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    const NameInPieces pieces = name_in(entries_[id].record->schema, entries_[id].in_place);
    const uint32_t hash = hash_of(pieces);
    const auto name = [&] { return fmt::to_string(fmt::join(pieces, "")); };
    Place& place = by_name_[place_of(by_name_, entries_, hash, name)];
    if (place.id_and_one != 0) fail("operator {} has two records", name());
    place = {hash, id + 1};
  }
}

std::optional<uint32_t> Registry::id_of(std::string_view name) const {
  const Place& place = by_name_[place_of(by_name_, entries_, hash_of({&name, 1}), [&] { return name; })];
  if (place.id_and_one == 0) return std::nullopt;
  return place.id_and_one - 1;
}

const Operator& Registry::made(uint32_t id) const {
  if (const Operator* op = by_id_[id].load(std::memory_order_acquire)) return *op;
  const std::lock_guard lock(making_);
  std::unique_ptr<Operator>& op = operators_[id];
  if (!op) op = make_operator(*entries_[id].record, entries_[id].in_place, id);
  by_id_[id].store(op.get(), std::memory_order_release);
  return *op;
}

const Operator* Registry::find(std::string_view name) const {
  const std::optional<uint32_t> id = id_of(name);
  return id ? &made(*id) : nullptr;
}

const std::vector<std::unique_ptr<Operator>>& Registry::operators() const {
  for (uint32_t id = 0; id < entries_.size(); ++id) made(id);
  for (uint32_t slot = 0; slot < by_slot_.size(); ++slot)
    if (id_of(full_name(slots()[slot]))) make_slot(slot);
  return operators_;
}

const Operator& Registry::make_slot(uint32_t slot) const {
  const Slot& called = slots()[slot];
  const Operator* op = find(full_name(called));
  if (!op) fail("operator {} is called, but has no record", full_name(called));
  if (called.use == SlotUse::one_tensor &&
      (op->schema.returns.size() != 1 || !op->schema.returns[0].is_tensor()))
    fail("{} is called for one tensor, but does not return one", op->name);
  by_slot_[slot].store(op, std::memory_order_release);
  return *op;
}

}  // namespace metaprof
