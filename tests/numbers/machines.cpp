#include "tests/numbers/machines.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/GradMode.h>

#include "meta/autograd/engine/engine.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "tests/libtorch/libtorch_call.h"

namespace metaprof {
namespace {

// Counts what libtorch holds for the program that runs. (Programs before it may have left something behind:
// graphs that keep themselves alive.)
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}
  c10::DataPtr allocate(size_t bytes) const override {
    if (!counting) return inner_->allocate(bytes);
    auto* block = new Block{inner_->allocate(bytes), bytes, program};
    live += int64_t(bytes);
    return {block->memory.get(), block, &give_back, c10::Device(c10::kCPU)};
  }

  static inline bool counting = false;
  static inline int64_t live = 0;
  static inline int program = 0;

 private:
  struct Block {
    c10::DataPtr memory;
    size_t bytes;
    int program;
  };
  static void give_back(void* context) {
    auto* block = static_cast<Block*>(context);
    if (block->program == program) live -= int64_t(block->bytes);
    delete block;
  }
  c10::Allocator* inner_;
};

void install_counting() {
  static CountingAllocator* allocator = [] {
    auto* made = new CountingAllocator(c10::GetAllocator(c10::kCPU));  // lives as long as the process
    c10::SetAllocator(c10::kCPU, made, /*priority=*/1);
    return made;
  }();
  (void)allocator;
}

// Distinct numbers in (−1, 1).
double leaf_value(size_t leaf, int64_t element) {
  const double unit = std::fmod(0.6180339887498949 * double(element + 1) + 0.41 * double(leaf + 1), 1.0);
  return 1.8 * unit - 0.9;
}

}  // namespace

std::vector<double> elements(const at::Tensor& tensor) {
  if (tensor._is_zerotensor()) return std::vector<double>(size_t(tensor.numel()), 0.0);
  const at::Tensor row_major = tensor.detach().contiguous();
  const auto* from = row_major.data_ptr<double>();
  return {from, from + row_major.numel()};
}

// --- ours

OurMachine::OurMachine(bool with_numbers)
    : session(make_session(platform_named("cpu"))),
      numbers(with_numbers ? std::make_unique<CpuNumbers>(*session) : nullptr) {}

OurMachine::~OurMachine() {
  registers.clear();
  leaves.clear();
}

std::vector<double> OurMachine::leaf_values(size_t leaf) { return elements(numbers->of(leaves[leaf])); }

void OurMachine::make_leaf(const Instruction& instruction) {
  Tensor tensor = session->empty(instruction.sizes, DType::f64);
  if (numbers) {
    auto* to = numbers->of(tensor).data_ptr<double>();
    for (int64_t i = 0; i < tensor.numel(); ++i) to[i] = leaf_value(leaves_made_, i);
    if (nudge && nudge->leaf == leaves_made_) to[nudge->element] += nudge->by;
  }
  ++leaves_made_;
  tensor->requires_grad = instruction.flag;
  leaves.push_back(tensor);
  registers.push_back(tensor);
}

void OurMachine::call(const Instruction& instruction) {
  std::vector<Value> arguments;
  for (const Operand& operand : instruction.operands) {
    if (operand.tensor >= 0) {
      arguments.emplace_back(registers[size_t(operand.tensor)]);
    } else if (!operand.tensors.empty()) {
      Value::Tensors list;
      for (int tensor : operand.tensors) list.push_back(registers[size_t(tensor)]);
      arguments.emplace_back(std::move(list));
    } else {
      arguments.push_back(operand.value);
    }
  }
  Results results = invoke(*session, *instruction.op, arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results.value(i).is_tensor()) registers.push_back(results.value(i).tensor());
    if (results.value(i).is_tensors())
      for (const Tensor& tensor : results.value(i).tensors()) registers.push_back(tensor);
  }
}

std::string OurMachine::run(const Instruction& instruction) {
  try {
    switch (instruction.kind) {
      case Instruction::Kind::leaf: make_leaf(instruction); break;
      case Instruction::Kind::call: call(instruction); break;
      case Instruction::Kind::drop: registers[size_t(instruction.tensor)] = Tensor(); break;
      case Instruction::Kind::grad_mode: session->modes.grad = instruction.flag; break;
      case Instruction::Kind::backward: {
        const Tensor root = metaprof::call<"sum">(*session, registers[size_t(instruction.tensor)]);
        backward(*session, std::span(&root, 1), {}, {}, {.retain_graph = instruction.flag});
      }
    }
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

double OurMachine::sum(int tensor) {
  double total = 0;
  for (double value : elements(numbers->of(registers[size_t(tensor)]))) total += value;
  return total;
}

void OurMachine::follow_trace() {
  for (; next_event_ < session->trace.events.size(); ++next_event_) {
    const Event& event = session->trace.events[next_event_];
    if (event.kind == Event::Kind::alloc) live_[event.id] = session->trace.bytes(event.id).count;
    if (event.kind == Event::Kind::free) live_.erase(event.id);
  }
}

int64_t OurMachine::live_bytes() {
  follow_trace();
  int64_t bytes = 0;
  for (const auto& [storage, size] : live_) bytes += size;
  return bytes;
}

// --- theirs

TheirMachine::TheirMachine() {
  install_counting();
  ++CountingAllocator::program;
  CountingAllocator::live = 0;
}

TheirMachine::~TheirMachine() { c10::GradMode::set_enabled(true); }

int64_t TheirMachine::live_bytes() const { return CountingAllocator::live; }

void TheirMachine::make_leaf(const Instruction& instruction, const std::vector<double>& values) {
  const c10::IntArrayRef sizes(instruction.sizes.data(), instruction.sizes.size());
  c10::Storage storage(c10::Storage::use_byte_size_t(), values.size() * sizeof(double),
                       c10::GetAllocator(c10::kCPU), true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(at::kDouble));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  std::copy(values.begin(), values.end(), tensor.data_ptr<double>());
  tensor.set_requires_grad(instruction.flag);
  leaves.push_back(tensor);
  registers.push_back(tensor);
}

void TheirMachine::call(const Instruction& instruction) {
  const auto no_tensor = [](const Tensor&) { return at::Tensor(); };
  std::vector<c10::IValue> arguments;
  for (size_t i = 0; i < instruction.op->schema.arguments.size(); ++i) {
    const Argument& argument = instruction.op->schema.arguments[i];
    if (i >= instruction.operands.size()) {
      arguments.push_back(to_ivalue(argument, argument.default_value, no_tensor));
      continue;
    }
    const Operand& operand = instruction.operands[i];
    if (operand.tensor >= 0) {
      arguments.emplace_back(registers[size_t(operand.tensor)]);
    } else if (!operand.tensors.empty()) {
      c10::List<at::Tensor> list;
      for (int tensor : operand.tensors) list.push_back(registers[size_t(tensor)]);
      arguments.emplace_back(std::move(list));
    } else {
      arguments.push_back(to_ivalue(argument, operand.value, no_tensor));
    }
  }
  for (const c10::IValue& value : call_libtorch_with_autograd(*instruction.op, arguments)) {
    if (value.isTensor()) registers.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) registers.push_back(tensor);
  }
}

std::string TheirMachine::run(const Instruction& instruction, const std::vector<double>& leaf_values) {
  Scoped<bool> counting(CountingAllocator::counting, true);
  try {
    switch (instruction.kind) {
      case Instruction::Kind::leaf: make_leaf(instruction, leaf_values); break;
      case Instruction::Kind::call: call(instruction); break;
      case Instruction::Kind::drop: registers[size_t(instruction.tensor)].reset(); break;
      case Instruction::Kind::grad_mode: c10::GradMode::set_enabled(instruction.flag); break;
      case Instruction::Kind::backward: {
        const at::Tensor root = registers[size_t(instruction.tensor)].sum();
        root.backward({}, instruction.flag);
      }
    }
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace metaprof
