#include "step/compiled/executor/interpreter.h"

#include <algorithm>

#include "core/error.h"
#include "meta/autograd/engine/input_buffer.h"
#include "step/compiled/executor/matmul_batches.h"

namespace metaprof::ir {
namespace {

using Given = SmallVector<metaprof::Value, 12>;

class Frame {
 public:
  Frame(const Code& code, Session& session) : code_(code), session_(session), values_(code.places) {
    for (const std::string& scope : code.scopes) scopes_.push_back(session.trace.intern(scope));
  }

  std::vector<metaprof::Value> run(std::vector<metaprof::Value> inputs) {
    const Body& body = code_.body;
    for (size_t i = 0; i < body.inputs.size(); ++i) put(body.inputs[i], std::move(inputs[i]));
    const Scoped<uint32_t> module(session_.module, session_.module);
    run(body);
    std::vector<metaprof::Value> outputs;
    for (const Operand& operand : body.outputs) outputs.push_back(take(operand));
    return outputs;
  }

 private:
  void put(int32_t place, metaprof::Value value) {
    if (place >= 0) values_[size_t(place)] = std::move(value);
  }
  metaprof::Value take(Operand operand) {
    if (operand.place < 0) {
      const Constant& constant = code_.constants[size_t(-1 - operand.place)];
      // The device on which the model runs (program/program.h).
      if (constant.kind() == Constant::Kind::device && constant.device().index < 0) return {session_.device};
      return constant;
    }
    metaprof::Value& value = values_[size_t(operand.place)];
    return operand.is_last ? std::exchange(value, metaprof::Value()) : value;
  }
  Given take_all(const Instruction& instruction) {
    Given given;
    for (const Operand& operand : instruction.inputs) given.push_back(take(operand));
    return given;
  }

  void run(const Body& body) {
    for (size_t i = body.begin; i < body.end; ++i) {
      const Instruction& instruction = code_.instructions[i];
      if (instruction.scope >= 0) session_.module = scopes_[size_t(instruction.scope)];
      run(instruction);
      for (const int32_t place : instruction.frees) values_[size_t(place)] = {};
    }
  }

  void run(const Instruction& instruction) {
    switch (instruction.kind) {
      case Kind::call: return run_call(instruction);
      case Kind::number: return run_number(instruction);
      case Kind::list_construct: return run_list(instruction);
      case Kind::list_unpack: return run_unpack(instruction);
      case Kind::constant_chunk: return run_chunk(instruction);
      case Kind::fused_concat: return run_concat(instruction);
      case Kind::branch: return run_branch(instruction);
      case Kind::loop: return run_loop(instruction);
      case Kind::autograd_zero: return put(instruction.outputs[0], {});
      case Kind::autograd_add: return run_autograd_add(instruction);
      case Kind::autograd_any_defined: return run_any_defined(instruction);
      case Kind::differentiable_graph:
      case Kind::fusion_group:
        return put_all(instruction, instruction.inner->run(session_, inputs_of(instruction)));
      case Kind::matmul_tree:
        return put(instruction.outputs[0], matmul_tree(session_, inputs_of(instruction)));
      case Kind::matmul_side:
        return put_all(instruction, matmul_side(session_, inputs_of(instruction),
                                                instruction.node->value("shared_left").boolean()));
      default:
        fail("{} cannot be run: it stands only in graphs that are being compiled", instruction.node->name);
    }
  }

  std::vector<metaprof::Value> inputs_of(const Instruction& instruction) {
    std::vector<metaprof::Value> inputs;
    inputs.reserve(instruction.inputs.size());
    for (const Operand& operand : instruction.inputs) inputs.push_back(take(operand));
    return inputs;
  }
  void put_all(const Instruction& instruction, std::vector<metaprof::Value> values) {
    for (size_t i = 0; i < instruction.outputs.size(); ++i) put(instruction.outputs[i], std::move(values[i]));
  }

  void run_call(const Instruction& instruction) {
    Given given = take_all(instruction);
    Results results = invoke(session_, *instruction.op, {given.data(), given.size()});
    for (size_t i = 0; i < instruction.outputs.size() && i < results.size(); ++i)
      put(instruction.outputs[i], std::move(results.list()[i]));
  }

  void run_number(const Instruction& instruction) {
    const Given given = take_all(instruction);
    put(instruction.outputs[0], instruction.number->evaluate({given.data(), given.size()}));
  }

  void run_list(const Instruction& instruction) {
    const Given given = take_all(instruction);
    if (instruction.node->output()->type.kind == Type::Kind::integers) {
      Sizes integers;
      for (const auto& value : given) integers.push_back(value.integer());
      return put(instruction.outputs[0], {integers});
    }
    metaprof::Value::Tensors tensors;
    for (const auto& value : given) tensors.push_back(value.tensor());
    if (instruction.node->has("of_chunks")) expect_all(tensors);
    put(instruction.outputs[0], {std::move(tensors)});
  }

  // Recorded with 2.11: it goes on with the gradients that there are, whose sizes then do not fit.
  static void expect_all(const metaprof::Value::Tensors& gradients) {
    if (!std::ranges::all_of(gradients, [](const Tensor& gradient) { return gradient.defined(); }))
      fail(
          "a chunk has no gradient, because nobody uses it: the framework's graph executor fails here, too; "
          "use all chunks, or run the model eagerly");
  }

  void run_chunk(const Instruction& instruction) {
    Given given = take_all(instruction);
    unpack(instruction, invoke(session_, *instruction.op, {given.data(), given.size()}).value());
  }
  void run_concat(const Instruction& instruction) {
    metaprof::Value::Tensors parts;
    for (const metaprof::Value& part : take_all(instruction)) parts.push_back(part.tensor());
    put(instruction.outputs[0],
        {call<"cat">(session_, std::move(parts), instruction.node->value("dim").integer())});
  }
  void run_unpack(const Instruction& instruction) { unpack(instruction, take(instruction.inputs[0])); }

  // A program may name more values than a call has made: nothing is known of those.
  void unpack(const Instruction& instruction, const metaprof::Value& list) {
    const bool of_tensors = list.is_tensors();
    const size_t size = of_tensors ? list.tensors().size() : list.is_none() ? 0 : list.integers().size();
    for (size_t i = 0; i < instruction.outputs.size(); ++i)
      put(instruction.outputs[i], i >= size    ? metaprof::Value()
                                  : of_tensors ? metaprof::Value(list.tensors()[i])
                                               : metaprof::Value(list.integers()[i]));
  }

  // --- Control flow

  void run_branch(const Instruction& instruction) {
    const Body& body = instruction.bodies[take(instruction.inputs[0]).boolean() ? 0 : 1];
    run(body);
    for (size_t i = 0; i < instruction.outputs.size(); ++i) {
      metaprof::Value value = take(body.outputs[i]);
      put(instruction.outputs[i], std::move(value));
    }
  }

  void run_loop(const Instruction& instruction) {
    const Body& body = instruction.bodies[0];
    const int64_t trips = take(instruction.inputs[0]).integer();
    bool goes_on = take(instruction.inputs[1]).boolean();
    std::vector<metaprof::Value> carried;
    for (size_t i = 2; i < instruction.inputs.size(); ++i) carried.push_back(take(instruction.inputs[i]));
    for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
      put(body.inputs[0], metaprof::Value(trip));
      for (size_t i = 0; i < carried.size(); ++i) put(body.inputs[i + 1], std::move(carried[i]));
      run(body);
      goes_on = take(body.outputs[0]).boolean();
      for (size_t i = 0; i < carried.size(); ++i) carried[i] = take(body.outputs[i + 1]);
    }
    put_all(instruction, std::move(carried));
  }

  // --- Gradients

  // Adds in place where nobody else sees the sum, as the engine does with what comes in for a node.
  void run_autograd_add(const Instruction& instruction) {
    Tensor a = take(instruction.inputs[0]).take_tensor();
    Tensor b = take(instruction.inputs[1]).take_tensor();
    if (!a.defined() || !b.defined())
      return put(instruction.outputs[0], {a.defined() ? std::move(a) : std::move(b)});
    if (!session_.modes.grad && can_accumulate_in_place(a)) {
      call<"add_.Tensor">(session_, a, b);
      return put(instruction.outputs[0], {std::move(a)});
    }
    put(instruction.outputs[0], {call<"add.Tensor">(session_, a, b)});
  }

  void run_any_defined(const Instruction& instruction) {
    bool any = false;
    for (const Operand& operand : instruction.inputs) any |= !take(operand).is_none();
    put(instruction.outputs[0], metaprof::Value(any));
  }

  const Code& code_;
  Session& session_;
  std::vector<metaprof::Value> values_;
  std::vector<uint32_t> scopes_;
};

}  // namespace

std::vector<metaprof::Value> run(const Code& code, Session& session, std::vector<metaprof::Value> inputs) {
  return Frame(code, session).run(std::move(inputs));
}

}  // namespace metaprof::ir
