// Random programs on three machines: our engine without data, our engine with numbers, and libtorch with an
// autograd of its own. After each instruction they agree in what is alive, in sizes, strides, versions and
// numbers, and in what is refused.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/numbers/machines.h"

#ifdef METAPROF_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace metaprof {
namespace {

constexpr int kInstructions = 18;

int how_many_programs() {
  if (const char* given = std::getenv("METAPROF_PROGRAMS")) return std::atoi(given);
#ifdef METAPROF_ADDRESS_SANITIZER
  return 500;
#else
  return 10000;
#endif
}

// A graph can keep itself alive, in the framework as here: what a tensor is multiplied by in place may have
// been computed from a view of it, which its node saves. What such programs leave behind is no finding.
class MayLeak {
#ifdef METAPROF_ADDRESS_SANITIZER
  __lsan::ScopedDisabler disabled_;
#endif
 public:
  MayLeak() {}
};

struct Program {
  std::vector<Instruction> instructions;
  std::string text() const {
    std::string text;
    for (const Instruction& instruction : instructions) text += "  " + describe(instruction) + "\n";
    return text;
  }
};

bool close(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-9 + 1e-7 * std::abs(b);
}

std::string compare_numbers(const std::vector<double>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size())
    return fmt::format("{} elements, libtorch has {}", ours.size(), theirs.size());
  for (size_t i = 0; i < ours.size(); ++i)
    if (!close(ours[i], theirs[i]))
      return fmt::format("element {}: {}, libtorch has {}", i, ours[i], theirs[i]);
  return {};
}

// Versions of gradients differ: libtorch 1.13 adds them out of place.
std::string compare_tensors(OurMachine& ours, const Tensor& a, const at::Tensor& b, bool versions) {
  if (a.defined() != b.defined()) return fmt::format("defined: {}, libtorch: {}", a.defined(), b.defined());
  if (!a.defined()) return {};
  const at::Tensor with_data = ours.numbers->of(a);
  if (with_data.sizes() != b.sizes()) return "sizes";
  for (int64_t d = 0; d < b.dim(); ++d)
    if (b.size(d) > 1 && with_data.stride(d) != b.stride(d)) return "strides";
  if (with_data.storage_offset() != b.storage_offset()) return "offset";
  if (a.requires_grad() != b.requires_grad())
    return fmt::format("requires grad: {}, libtorch: {}", a.requires_grad(), b.requires_grad());
  if (a.is_leaf() != b.is_leaf()) return fmt::format("leaf: {}, libtorch: {}", a.is_leaf(), b.is_leaf());
  if (versions && a->storage->version != b._version())
    return fmt::format("version {}, libtorch has {}", a->storage->version, b._version());
  return compare_numbers(elements(with_data), elements(b));
}

// The same kind of refusal.
std::string compare_errors(const std::string& ours, const std::string& theirs) {
  if (ours.empty() && theirs.empty()) return {};
  static constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"was modified in place", "modified by an inplace operation"},
      // Writing that message libtorch asks for the view's history, which is refused.
      {"was modified in place", "another view of its base has been modified inplace"},
      {"a second time", "a second time"},
      {"a view of a leaf", "a view of a leaf"},
      {"a leaf that requires grad", "a leaf Variable that requires grad"},
      {"returns several views", "returns multiple views"},
      {"no_grad mode", "no_grad mode"},
      {"no_grad mode", "INTERNAL ASSERT FAILED"},  // libtorch 1.13 does not expect a view of such a view
      {"does not require grad", "does not require grad"}};
  for (auto [mine, its] : kinds)
    if ((ours.find(mine) != std::string::npos) && (theirs.find(its) != std::string::npos)) return {};
  // Both refuse for a reason that has nothing to do with autograd, e.g. sizes that do not broadcast.
  bool plain = !ours.empty() && !theirs.empty();
  for (auto [mine, its] : kinds)
    plain &= ours.find(mine) == std::string::npos && theirs.find(its) == std::string::npos;
  if (plain) return {};
  return fmt::format("error '{}', libtorch has '{}'", ours, theirs);
}

// A storage that some register or gradient has looked into.
struct WatchedStorage {
  uint32_t ours;
  c10::weak_intrusive_ptr<c10::StorageImpl> theirs;
};

class Comparison {
 public:
  OurMachine meta{false}, ours{true};
  TheirMachine theirs;

  /// The first difference; empty: none. `refused`: the program ends here.
  std::string run(Instruction& instruction, bool& refused) {
    instruction.first_result = int(meta.registers.size());
    const std::string meta_error = meta.run(instruction), our_error = ours.run(instruction);
    instruction.results = int(meta.registers.size()) - instruction.first_result;
    if (meta_error != our_error)
      return fmt::format("without data '{}', with data '{}'", meta_error, our_error);
    std::vector<double> values;
    if (instruction.kind == Instruction::Kind::leaf) values = ours.leaf_values(ours.leaves.size() - 1);
    const std::string their_error = theirs.run(instruction, values);
    const std::string difference = compare_errors(our_error, their_error);
    refused = !our_error.empty();
    if (!difference.empty() || refused) return difference;
    return compare_states();
  }

 private:
  std::string compare_states() {
    if (meta.session->trace.events.size() != ours.session->trace.events.size())
      return "events with and without data";
    for (size_t i = 0; i < ours.registers.size(); ++i) {
      const std::string what = compare_tensors(ours, ours.registers[i], theirs.registers[i], true);
      if (!what.empty()) return fmt::format("r{}: {}", i, what);
      if (ours.registers[i].defined()) watch(ours.registers[i], theirs.registers[i]);
    }
    for (size_t i = 0; i < ours.leaves.size(); ++i) {
      const Tensor gradient = ours.leaves[i].grad();
      const std::string what = compare_tensors(ours, gradient, theirs.leaves[i].mutable_grad(), false);
      if (!what.empty()) return fmt::format("gradient of leaf {}: {}", i, what);
      if (gradient.defined()) watch(gradient, theirs.leaves[i].mutable_grad());
    }
    const int64_t bytes = meta.live_bytes(), their_bytes = theirs.live_bytes();
    ours.live_bytes();
    for (const WatchedStorage& storage : watched_) {
      if (ours.is_alive(storage.ours) != meta.is_alive(storage.ours))
        return "a storage lives with data only, or without";
      if (ours.is_alive(storage.ours) == storage.theirs.expired())
        return fmt::format(
            "storage {} is {}", storage.ours,
            ours.is_alive(storage.ours) ? "alive, in libtorch it is freed" : "freed, in libtorch it lives");
    }
    if (bytes != their_bytes) return fmt::format("{} bytes are alive, in libtorch {}", bytes, their_bytes);
    return {};
  }

  void watch(const Tensor& tensor, const at::Tensor& their_tensor) {
    const uint32_t id = tensor->storage->id;
    if (id < seen_.size() && seen_[id]) return;
    if (id >= seen_.size()) seen_.resize(id + 1, false);
    seen_[id] = true;
    watched_.push_back(
        {id, c10::weak_intrusive_ptr<c10::StorageImpl>(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
                 their_tensor.storage().unsafeGetStorageImpl()))});
  }

  std::vector<bool> seen_;
  std::vector<WatchedStorage> watched_;
};

TEST(RandomPrograms, AgreeWithLibtorch) {
  const MayLeak may_leak;
  int refused_calls = 0, instructions = 0, failures = 0;
  const char* only = std::getenv("METAPROF_SEED");
  for (int seed = only ? std::atoi(only) : 0; seed < (only ? std::atoi(only) + 1 : how_many_programs());
       ++seed) {
    Comparison machines;
    ProgramGenerator generator(uint64_t(seed), false);
    Program program;
    for (int i = 0; i < kInstructions; ++i) {
      program.instructions.push_back(generator.next(machines.meta.registers));
      bool refused = false;
      const std::string difference = machines.run(program.instructions.back(), refused);
      ++instructions;
      if (!difference.empty()) {
        ADD_FAILURE() << "program " << seed << ": " << difference << "\n" << program.text();
        ++failures;
        break;
      }
      refused_calls += refused;
      // A refused call has changed nothing; a backward that fails may have run half of its nodes.
      if (refused && program.instructions.back().kind == Instruction::Kind::backward) break;
    }
    if (failures > 20) break;
  }
  GTEST_LOG_(INFO) << fmt::format("{} instructions; {} of them were refused by all", instructions,
                                  refused_calls);
}

// The sum of a register after a program that ran with one leaf's element moved.
double sum_after(const Program& program, int root, const OurMachine::Nudge& nudge) {
  OurMachine machine(true);
  machine.nudge = nudge;
  for (const Instruction& instruction : program.instructions) machine.run(instruction);
  return machine.sum(root);
}

// The first wrong gradient; empty: none. `compared` counts elements.
std::string compare_with_differences(const Program& program, OurMachine& machine, int root, int& compared) {
  constexpr double step = 1e-6;
  for (size_t leaf = 0; leaf < machine.leaves.size(); ++leaf) {
    // One that was written in place is no leaf any more.
    if (!machine.leaves[leaf].requires_grad() || !machine.leaves[leaf].is_leaf()) continue;
    const Tensor gradient = machine.leaves[leaf].grad();
    for (int64_t element = 0; element < machine.leaves[leaf].numel(); element += 3) {
      const double analytic =
          gradient.defined() ? elements(machine.numbers->of(gradient))[size_t(element)] : 0;
      const double above = sum_after(program, root, {leaf, element, step});
      const double below = sum_after(program, root, {leaf, element, -step});
      const double numeric = (above - below) / (2 * step);
      ++compared;
      if (!(std::abs(analytic - numeric) <= 1e-5 + 1e-3 * std::abs(numeric)))
        return fmt::format("leaf {} element {}: gradient {}, differences give {}", leaf, element, analytic,
                           numeric);
    }
  }
  return {};
}

TEST(RandomPrograms, GradientsAreDifferences) {
  const MayLeak may_leak;
  int checked = 0, compared = 0;
  for (int seed = 0; seed < how_many_programs() / 25; ++seed) {
    OurMachine machine(true);
    ProgramGenerator generator(uint64_t(seed) + 1000000, true);
    Program program;
    for (int i = 0; i < kInstructions; ++i) {
      program.instructions.push_back(generator.next(machine.registers));
      if (machine.run(program.instructions.back()).empty()) continue;
      program.instructions.pop_back();  // refused
      break;
    }
    int root = -1;
    for (size_t i = 0; i < machine.registers.size(); ++i)
      if (machine.registers[i].requires_grad()) root = int(i);
    // A program may have overwritten what backward needs, or run into numbers without bound.
    if (root < 0 || !(std::abs(machine.sum(root)) < 1e6)) continue;
    if (!machine.run({.kind = Instruction::Kind::backward, .tensor = root}).empty()) continue;
    const std::string what = compare_with_differences(program, machine, root, compared);
    if (!what.empty())
      ADD_FAILURE() << "program " << seed << ", sum of r" << root << ": " << what << "\n" << program.text();
    ++checked;
  }
  GTEST_LOG_(INFO) << fmt::format("{} programs, {} elements of gradients", checked, compared);
  EXPECT_GT(checked, how_many_programs() / 100);
}

}  // namespace
}  // namespace metaprof
