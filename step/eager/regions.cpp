// Regions of a program: run, and computed again.

#include <algorithm>

#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/modes/checkpoint.h"
#include "step/eager/interpreter.h"

namespace metaprof {
namespace {

using KeptById = std::map<uint32_t, std::vector<int>>;

// Calls are told apart by how many of their operator the region has made before.
class KeepSome {
 public:
  explicit KeepSome(const KeptById& kept) : kept_(kept) {}

  CheckpointPolicy operator()(const Call& call, bool again) {
    const auto found = kept_.find(call.op.id);
    if (found == kept_.end()) return CheckpointPolicy::prefer_recompute;
    const int number = calls_[again][call.op.id]++;
    const std::vector<int>& which = found->second;
    const bool keep = which.empty() || std::ranges::binary_search(which, number);
    return keep ? CheckpointPolicy::must_save : CheckpointPolicy::prefer_recompute;
  }

 private:
  const KeptById& kept_;
  std::map<uint32_t, int> calls_[2];
};

}  // namespace

void Interpreter::run_stretch(const Code& code, const std::vector<Code::Region>& regions, size_t begin,
                              size_t end, Values& values) {
  for (const Code::Region& region : regions) {
    run_instructions(code, begin, region.of.begin, values);
    run_one(code, region, values);
    begin = region.of.end;
  }
  run_instructions(code, begin, end, values);
}

void Interpreter::run_one(const Code& code, const Code::Region& region, Values& values) {
  if (!region.of.offload) return run_checkpoint(code, region, values);
  const SavedTensorHooksScope on_host(session_, save_on_host(session_, true));
  run_stretch(code, region.inside, region.of.begin, region.of.end, values);
}

// The region's instructions on values of its own.
std::vector<Value> Interpreter::run_again(const Code& code, const Code::Region& region, Values values) {
  // A region that is computed again enters its modules again; whatever stops it, they are left.
  struct Restore {
    Interpreter& interpreter;
    int32_t before;
    ~Restore() { interpreter.move_to_modules(before); }
  } restore{*this, modules_};
  run_stretch(code, region.inside, region.of.begin, region.of.end, values);
  Values outputs;
  for (const ValueId output : region.outputs) outputs.push_back(std::move(values[size_t(output)]));
  return outputs;
}

void Interpreter::run_checkpoint(const Code& code, const Code::Region& region, Values& values) {
  Values state(values.size()), inputs;
  for (const ValueId value : region.state) state[size_t(value)] = values[size_t(value)];
  for (const ValueId value : region.inputs) inputs.push_back(values[size_t(value)]);
  auto body = [this, &code, &region, state](const Values& given) {
    Values own = state;
    for (size_t i = 0; i < given.size(); ++i) own[size_t(region.inputs[i])] = given[i];
    return run_again(code, region, std::move(own));
  };
  CheckpointOptions options{.reentrant = region.of.reentrant, .early_stop = !region.of.whole};
  if (!region.kept.empty()) options.policy = KeepSome(region.kept);
  Values outputs = metaprof::checkpoint(session_, body, inputs, options);
  for (size_t i = 0; i < outputs.size(); ++i) values[size_t(region.outputs[i])] = std::move(outputs[i]);
  for (size_t i = region.of.begin; i < region.of.end; ++i)
    for (const ValueId value : code.instructions[i].node->drops) values[size_t(value)] = Value();
}

}  // namespace metaprof
