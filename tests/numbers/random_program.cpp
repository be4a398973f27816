#include "tests/numbers/random_program.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/ops/all.h"

namespace metaprof {
namespace {

Instruction call_of(std::string_view name, std::vector<Operand> operands) {
  const Operator* op = standard_registry().find("aten::" + std::string(name));
  if (!op) fail("a random program calls aten::{}, which has no record", name);
  return {.kind = Instruction::Kind::call, .op = op, .operands = std::move(operands)};
}

Operand reg(int number) { return {.tensor = number}; }
Operand plain(Value value) { return {.value = std::move(value)}; }

constexpr std::string_view kSmooth[] = {"neg",   "sin", "cos",  "tanh",  "sigmoid",
                                        "clone", "erf", "silu", "square"};
constexpr std::string_view kWithKinks[] = {"relu", "abs", "detach"};
constexpr std::string_view kBinary[] = {"add.Tensor", "sub.Tensor", "mul.Tensor", "mul.Tensor"};
constexpr std::string_view kBinaryWithKinks[] = {"maximum", "minimum"};
constexpr std::string_view kInPlace[] = {"sin_", "cos_", "tanh_", "sigmoid_", "neg_"};
constexpr std::string_view kInPlaceWithKinks[] = {"relu_", "zero_"};
constexpr std::string_view kBinaryInPlace[] = {"add_.Tensor", "sub_.Tensor", "mul_.Tensor", "copy_"};

}  // namespace

std::string describe(const Instruction& instruction) {
  std::string results;
  for (int i = 0; i < instruction.results; ++i) results += fmt::format("r{} ", instruction.first_result + i);
  if (!results.empty()) results += "= ";
  switch (instruction.kind) {
    case Instruction::Kind::leaf:
      return fmt::format("{}leaf {}{}", results, to_string(SizesView(instruction.sizes)),
                         instruction.flag ? " requires grad" : "");
    case Instruction::Kind::drop: return fmt::format("drop r{}", instruction.tensor);
    case Instruction::Kind::grad_mode: return instruction.flag ? "grad mode on" : "grad mode off";
    case Instruction::Kind::backward:
      return fmt::format("backward of the sum of r{}{}", instruction.tensor,
                         instruction.flag ? ", graph kept" : "");
    case Instruction::Kind::call: break;
  }
  std::string text;
  for (const Operand& operand : instruction.operands) {
    if (!text.empty()) text += ", ";
    if (operand.tensor >= 0) {
      text += fmt::format("r{}", operand.tensor);
    } else if (!operand.tensors.empty()) {
      text += '(';
      for (int tensor : operand.tensors) text += fmt::format("r{} ", tensor);
      text.back() = ')';
    } else {
      text += describe(operand.value);
    }
  }
  return fmt::format("{}{}({})", results, instruction.op->name, text);
}

uint64_t ProgramGenerator::random(uint64_t below) {  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (z ^ z >> 31) % below;
}

// Rather a recent register than an old one; -1 if none lives.
int ProgramGenerator::pick(const Registers& registers) {
  std::vector<int> alive;
  for (size_t i = 0; i < registers.size(); ++i)
    if (registers[i].defined()) alive.push_back(int(i));
  if (alive.empty()) return -1;
  const uint64_t a = random(alive.size()), b = random(alive.size());
  return alive[std::max(a, b)];
}

// Another register that broadcasts with this one; the register itself if there is none.
int ProgramGenerator::pick_like(const Registers& registers, int like) {
  const Sizes& sizes = registers[size_t(like)].sizes();
  for (int attempt = 0; attempt < 6; ++attempt) {
    const int other = pick(registers);
    const Sizes& others = registers[size_t(other)].sizes();
    bool fits = true;
    for (size_t i = 1; i <= std::min(sizes.size(), others.size()); ++i) {
      const int64_t a = sizes[sizes.size() - i], b = others[others.size() - i];
      fits &= a == b || a == 1 || b == 1;
    }
    if (fits) return other;
  }
  return like;
}

Instruction ProgramGenerator::leaf() {
  static constexpr int64_t sizes[] = {2, 3, 4};
  Sizes shape;
  const uint64_t dims = 1 + random(3);
  for (uint64_t d = 0; d < dims; ++d) shape.push_back(sizes[random(3)]);
  return {.kind = Instruction::Kind::leaf, .sizes = shape, .flag = chance(70)};
}

Instruction ProgramGenerator::elementwise(const Registers& registers) {
  const int a = pick(registers);
  switch (random(8)) {
    case 0: return call_of("mul.Scalar", {reg(a), plain(0.5)});
    case 1: return call_of("add.Scalar", {reg(a), plain(1)});
    case 2: return call_of("pow.Tensor_Scalar", {reg(a), plain(2)});
    case 3:
    case 4: return call_of(kSmooth[random(std::size(kSmooth))], {reg(a)});
    case 5:
      if (!smooth_) return call_of(kWithKinks[random(std::size(kWithKinks))], {reg(a)});
      [[fallthrough]];
    case 6:
      if (!smooth_ && chance(30))
        return call_of(kBinaryWithKinks[random(2)], {reg(a), reg(pick_like(registers, a))});
      [[fallthrough]];
    default: return call_of(kBinary[random(std::size(kBinary))], {reg(a), reg(pick_like(registers, a))});
  }
}

Instruction ProgramGenerator::reduction(const Registers& registers) {
  const int a = pick(registers);
  const int64_t dims = registers[size_t(a)].dim();
  if (dims == 0) return call_of("tanh", {reg(a)});
  const auto dim = int64_t(random(uint64_t(dims)));
  const bool keep = chance(50);
  switch (random(6)) {
    case 0: return call_of("sum", {reg(a)});
    case 1: return call_of("mean", {reg(a)});
    case 2: return call_of("sum.dim_IntList", {reg(a), plain(Sizes{dim}), plain(keep)});
    case 3: return call_of(smooth_ ? "logsumexp" : "amax", {reg(a), plain(Sizes{dim}), plain(keep)});
    case 4: return call_of("logsumexp", {reg(a), plain(Sizes{dim}), plain(keep)});
    default: return call_of(chance(50) ? "softmax.int" : "log_softmax.int", {reg(a), plain(dim)});
  }
}

Instruction ProgramGenerator::view(const Registers& registers) {
  const int a = pick(registers);
  const Tensor& tensor = registers[size_t(a)];
  const int64_t dims = tensor.dim();
  if (dims == 0) return call_of("unsqueeze", {reg(a), plain(0)});
  const auto dim = int64_t(random(uint64_t(dims)));
  const int64_t size = tensor.size(dim);
  switch (random(11)) {
    case 0: return call_of("transpose.int", {reg(a), plain(dim), plain(-1)});
    case 1: return call_of("select.int", {reg(a), plain(dim), plain(int64_t(random(uint64_t(size))))});
    case 2: return call_of("slice.Tensor", {reg(a), plain(dim), plain(size > 1 ? 1 : 0), plain(size)});
    case 3: return call_of("unsqueeze", {reg(a), plain(dim)});
    case 4: return call_of("squeeze", {reg(a)});
    case 5:
      return call_of("expand", {reg(a), plain([&] {
                                  Sizes sizes = tensor.sizes();
                                  sizes.insert(0, 2);
                                  return Value(sizes);
                                }())});
    case 6: return call_of("reshape", {reg(a), plain(Sizes{-1})});
    case 7: return call_of("unbind.int", {reg(a), plain(dim)});
    case 8: return call_of("split.Tensor", {reg(a), plain(std::max<int64_t>(1, size / 2)), plain(dim)});
    case 9: return call_of("chunk", {reg(a), plain(2), plain(dim)});
    default: return call_of("narrow", {reg(a), plain(dim), plain(0), plain(std::max<int64_t>(1, size - 1))});
  }
}

Instruction ProgramGenerator::join(const Registers& registers) {
  const int a = pick(registers);
  const Sizes& sizes = registers[size_t(a)].sizes();
  std::vector<int> same{a};
  for (int attempt = 0; attempt < 4; ++attempt) {
    const int other = pick(registers);
    if (registers[size_t(other)].sizes() == sizes) same.push_back(other);
  }
  if (sizes.empty() || chance(50)) return call_of("stack", {{.tensors = same}});
  return call_of("cat", {{.tensors = same}, plain(int64_t(random(sizes.size())))});
}

Instruction ProgramGenerator::product(const Registers& registers) {
  const int a = pick(registers);
  const Tensor& left = registers[size_t(a)];
  if (left.dim() == 2) {
    for (size_t i = 0; i < registers.size(); ++i) {
      const Tensor& right = registers[i];
      if (!right.defined() || right.dim() == 0 || right.dim() > 2 || right.size(0) != left.size(1)) continue;
      return call_of(right.dim() == 1 ? "mv" : chance(50) ? "mm" : "matmul", {reg(a), reg(int(i))});
    }
  }
  return call_of("mul.Tensor", {reg(a), reg(a)});
}

Instruction ProgramGenerator::in_place(const Registers& registers) {
  const int a = pick(registers);
  switch (random(6)) {
    case 0: return call_of("mul_.Scalar", {reg(a), plain(0.5)});
    case 1: return call_of("add_.Scalar", {reg(a), plain(1)});
    case 2:
      if (!smooth_) return call_of(kInPlaceWithKinks[random(std::size(kInPlaceWithKinks))], {reg(a)});
      [[fallthrough]];
    case 3: return call_of(kInPlace[random(std::size(kInPlace))], {reg(a)});
    default: {
      // A tensor that is multiplied by itself in place keeps itself alive, in the framework, too.
      const int other = pick_like(registers, a);
      if (registers[size_t(other)]->storage.get() == registers[size_t(a)]->storage.get())
        return call_of("mul_.Scalar", {reg(a), plain(0.5)});
      return call_of(kBinaryInPlace[random(std::size(kBinaryInPlace))], {reg(a), reg(other)});
    }
  }
}

Instruction ProgramGenerator::next(const Registers& registers) {
  int alive = 0;
  for (const Tensor& tensor : registers) alive += tensor.defined();
  if (alive < 2 || (alive < 5 && chance(20))) return leaf();
  const uint64_t kind = random(100);
  if (kind < 30) return elementwise(registers);
  if (kind < 38) return reduction(registers);
  if (kind < 55) return view(registers);
  if (kind < 60) return join(registers);
  if (kind < 67) return product(registers);
  if (kind < 80) return in_place(registers);
  if (kind < 92 || smooth_) return {.kind = Instruction::Kind::drop, .tensor = pick(registers)};
  if (kind < 96) return {.kind = Instruction::Kind::grad_mode, .flag = grad_ = !grad_};
  return {.kind = Instruction::Kind::backward, .flag = chance(40), .tensor = pick(registers)};
}

}  // namespace metaprof
