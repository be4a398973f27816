// Checkpointed regions: running them, and running them again.

#include "meta/autograd/checkpoint.h"
#include "meta/run/interpreter.h"

namespace metaprof {

// The region's instructions on values of its own.
std::vector<Value> Interpreter::run_again(const Code& code, const Code::Checkpoint& checkpoint,
                                          Values values) {
  // A region that is computed again enters its modules again; whatever stops it, they are left.
  struct Restore {
    Interpreter& interpreter;
    int32_t before;
    ~Restore() { interpreter.move_to_modules(before); }
  } restore{*this, modules_};
  run_instructions(code, checkpoint.region.begin, checkpoint.region.end, values);
  Values outputs;
  for (const ValueId output : checkpoint.outputs) outputs.push_back(std::move(values[size_t(output)]));
  return outputs;
}

void Interpreter::run_checkpoint(const Code& code, const Code::Checkpoint& checkpoint, Values& values) {
  Values state(values.size()), inputs;
  for (const ValueId value : checkpoint.state) state[size_t(value)] = values[size_t(value)];
  for (const ValueId value : checkpoint.inputs) inputs.push_back(values[size_t(value)]);
  auto body = [this, &code, &checkpoint, state](const Values& given) {
    Values own = state;
    for (size_t i = 0; i < given.size(); ++i) own[size_t(checkpoint.inputs[i])] = given[i];
    return run_again(code, checkpoint, std::move(own));
  };
  Values outputs = metaprof::checkpoint(session_, body, inputs, {.reentrant = checkpoint.region.reentrant});
  for (size_t i = 0; i < outputs.size(); ++i) values[size_t(checkpoint.outputs[i])] = std::move(outputs[i]);
  for (size_t i = checkpoint.region.begin; i < checkpoint.region.end; ++i)
    for (const ValueId value : code.instructions[i].node->drops) values[size_t(value)] = Value();
}

}  // namespace metaprof
