#pragma once
// The operators that a session knows: records with what follows from them, found by name or by slot.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "meta/op/record.h"

namespace metaprof {

/// A value that a node keeps for backward: an argument or a result that a formula reads.
struct SavedPlan {
  bool result = false;
  uint8_t index = 0;
  /// Kept only if the argument with this index needs a gradient; -1: whenever the node exists; kForOthers: if an
  /// argument other than this one does.
  int8_t guard = -1;
  static constexpr int8_t kForOthers = -2;
};

/// One row of the derivative table with names resolved.
struct RowPlan {
  SmallVector<uint8_t, 4> targets;  ///< argument indices
  SmallVector<uint8_t, 4> saved;    ///< indices into Operator::saved
  Gradients (*formula)(Backward&) = nullptr;
};

struct Requirements;  // meta/op/takes.h

/// What a call must be given: every call is checked by it (meta/session/check_arguments.h).
struct Takes {
  SmallVector<uint16_t, 8> kinds;  ///< per argument: bit k stands for values of Value::Kind k, as they are
  std::shared_ptr<const Requirements> beyond_schema;  ///< null: nothing
};

/// A record and what follows from it.
struct Operator {
  explicit Operator(const Op& record) : record(record) {}

  const Op& record;
  Schema schema;
  std::string name;       ///< "aten::add.Tensor"
  std::string node_name;  ///< "AddBackward0"
  uint32_t id = 0;
  bool in_place = false;  ///< the in-place variant of a functional record
  bool writes = false;    ///< some argument is written
  Takes takes;
  /// Tensor arguments that are written and returned. Only these get a new history and a new version: what an
  /// operator writes on the side (noise, running statistics) keeps its own (gen_variable_type.py,
  /// emit_increment_version).
  SmallVector<uint8_t, 4> rewritten;
  void (*host_code[2])(Call&) = {nullptr, nullptr};  ///< by DeviceType; null: results are allocated in order
  uint32_t without_gradient = 0;  ///< bit i: result i is not differentiable whatever its dtype
  std::vector<SavedPlan> saved;
  std::vector<RowPlan> rows;  ///< in the order in which formulas run: by target name
  /// Per argument: its number among the single tensors, or among all others.
  SmallVector<uint8_t, 8> place;
  SmallVector<uint8_t, 4> differentiable;  ///< argument indices, in the order of the schema: the node's edges

  bool has_derivative() const { return !rows.empty(); }
};

/// An operator is made of its record when it is first asked for: a model has some dozens of two thousand. So is its name:
/// what is kept of it until then is a hash. Several threads may use one registry.
class Registry {
 public:
  /// The records that hold in a version of the framework. They must outlive the registry. Errors: two of one name.
  Registry(std::span<const Records> tables, FrameworkVersion version);
  Registry(const Registry&) = delete;

  /// The operator of this name ("aten::add.Tensor"), or null. Errors: its record contradicts itself.
  const Operator* find(std::string_view name) const;
  /// All of them, by id. Errors: as find, of any record, and of what code calls.
  const std::vector<std::unique_ptr<Operator>>& operators() const;

  /// The operator that code names in `call<"mm">`; an Error if no record has that name.
  const Operator& at_slot(uint32_t slot) const {
    if (const Operator* op = by_slot_[slot].load(std::memory_order_acquire)) return *op;
    return make_slot(slot);
  }

 private:
  struct Entry {
    const Op* record;
    bool in_place;
  };
  struct Place {
    uint32_t hash = 0;
    uint32_t id_and_one = 0;  // 0: free
  };
  void index_names();
  std::optional<uint32_t> id_of(std::string_view name) const;
  const Operator& made(uint32_t id) const;
  const Operator& make_slot(uint32_t slot) const;

  std::vector<Entry> entries_;  // by id
  std::vector<Place> by_name_;  // where its hash says, or behind; a power of two of them
  mutable std::mutex making_;   // of operators_
  mutable std::vector<std::unique_ptr<Operator>> operators_;           // by id; null: nobody has asked for it
  mutable std::vector<std::atomic<const Operator*>> by_id_, by_slot_;  // the same, for who does not wait
};

/// How code calls an operator: for its only result, which is a tensor, or for all that it returns.
enum class SlotUse : uint8_t { one_tensor, all_results };

/// An operator that the program's code calls. Numbered before main begins.
struct Slot {
  std::string_view name;  ///< "add.Tensor": of `aten` if it has no namespace
  SlotUse use;
};
uint32_t register_slot(Slot slot);
const std::vector<Slot>& slots();

template <size_t N>
struct FixedString {
  consteval FixedString(const char (&text)[N]) { std::copy_n(text, N, characters); }
  char characters[N];
  constexpr std::string_view view() const { return {characters, N - 1}; }
};
template <FixedString name>
inline constexpr auto kept_name = name;
template <FixedString name, SlotUse use>
inline const uint32_t slot_of = register_slot({kept_name<name>.view(), use});

}  // namespace metaprof
