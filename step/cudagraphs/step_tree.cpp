#include "step/cudagraphs/step_tree.h"

#include <fmt/format.h>

#include "core/error.h"
#include "meta/ops/rules/library.h"
#include "program/visit.h"
#include "step/compiled/aot/graph_break.h"
#include "step/cudagraphs/compiled_part.h"
#include "step/eager/interpreter.h"

namespace metaprof {
namespace {

class Steps {
 public:
  Steps(const Program& program, const Platform& platform, const StepOptions& options, bool captures_forward,
        bool captures_backward, CachingAllocator& allocator)
      : program_(program),
        platform_(platform),
        options_(options),
        training_(program, platform, options,
                  [this](const Program& indexed) {
                    indexed_ = &indexed;
                    return [this](Session&, const std::vector<Value>& inputs) { return run_model(inputs); };
                  }),
        allocator_(allocator),
        runner_(training_.session(), platform.device(), allocator),
        tree_(runner_),
        process_{training_, runner_, tree_, captures_forward, captures_forward && captures_backward} {
    const std::vector<ProgramPart> compiled = compiled_parts(program_, platform_.framework),
                                   eager = compiled_parts(*indexed_, platform_.framework);
    if (compiled.size() != eager.size()) fail("{}: its calls are not cut alike", program_.origin);
    for (size_t i = 0; i < compiled.size(); ++i) add_part(compiled[i], eager[i]);
    last_use_[program_.loss()] = parts_.size();
  }

  StepTree run() {
    int steps = 0;
    while (steps < options_.steps && !runner_.use_of_overwritten()) run_step(steps++);
    runner_.catch_up();
    StepTree tree{.steps = steps,
                  .counters = tree_.counters(),
                  .nodes = tree_.nodes(),
                  .functions = functions_,
                  .skips = process_.captures_backward ? 0 : 1,
                  .memory = statistics_of(allocator_),
                  .not_modelled = "",
                  .out_of_memory = runner_.out_of_memory(),
                  .overwritten = use_of_overwritten()};
    for (const Part& part : parts_)
      if (part.compiled && tree.not_modelled.empty()) tree.not_modelled = part.compiled->not_modelled();
    return tree;
  }

 private:
  struct Part {
    ProgramPart range, eager;                  // calls of the program, and of what Python runs
    std::vector<ValueId> takes, makes;         // tensors and numbers that other parts make or take
    std::unique_ptr<CompiledPart> compiled;    // once it has been called
    Program program;                           // where Python runs it
    std::unique_ptr<Interpreter> interpreter;  // of `program`
  };

  // Python holds what a call returned as long as it runs what comes behind the call: also what nobody uses.
  void add_part(const ProgramPart& compiled, const ProgramPart& eager) {
    Part& part = parts_.emplace_back();
    part.range = compiled;
    part.eager = eager;
    part.takes = handed_to(program_, compiled.begin, compiled.end);
    part.makes = handed_on(program_, compiled.begin, compiled.end);
    for (const ValueId value : part.takes) last_use_[value] = parts_.size() - 1;
    if (compiled.compiled) return;
    made_eagerly_.insert(part.makes.begin(), part.makes.end());
    for (const ValueId value : held_results(*indexed_, eager)) {
      if (std::ranges::find(part.makes, value) != part.makes.end()) continue;
      part.makes.push_back(value);
      last_use_[value] = parts_.size();
    }
  }

  void run_step(int step) {
    ++steps_begun_;
    if (training_.has_optimizer()) training_.zero_grad(step);
    for (int micro = 0; micro < options_.accumulate && !runner_.use_of_overwritten(); ++micro) {
      const int number = options_.accumulate > 1 ? micro : -1;
      training_.forward(step, number);
      training_.backward(step, number);
      process_.lent.clear();
      training_.drop_loss();
      runner_.catch_up();
    }
    if (training_.has_optimizer() && !runner_.use_of_overwritten()) training_.update(step);
  }

  std::string use_of_overwritten() {
    const auto index = runner_.use_of_overwritten();
    if (!index) return "";
    const Trace& trace = training_.session().trace;
    const CallRecord& call = trace.calls[*index];
    return fmt::format("{} in {} of step {}", trace.text(call.op), to_string(call.phase), steps_begun_);
  }

  // The program's outputs, of which the step wants the loss alone.
  std::vector<Value> run_model(const std::vector<Value>& inputs) {
    tree_.begin_generation();
    std::map<ValueId, Value> values;
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      std::vector<Value> handed;
      for (const ValueId value : part.takes) handed.push_back(values.at(value));
      const std::vector<Value> made =
          part.range.compiled ? run_compiled(part, inputs, handed) : run_eagerly(part, inputs, handed);
      for (size_t j = 0; j < part.makes.size(); ++j) values[part.makes[j]] = made[j];
      std::erase_if(values, [&](const auto& value) { return last_use_.at(value.first) <= i; });
    }
    std::vector<Value> outputs(program_.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const auto loss = values.find(program_.outputs[i].operand.value);
          loss != values.end() && loss->first == program_.loss())
        outputs[i] = loss->second;
    return outputs;
  }

  // Compiled when the first inputs are there.
  std::vector<Value> run_compiled(Part& part, const std::vector<Value>& inputs,
                                  const std::vector<Value>& handed) {
    if (!part.compiled) compile(part, handed);
    std::vector<Value> made = part.compiled->run(handed);
    return part.compiled->makes_only_views() ? run_eagerly(part, inputs, handed) : made;
  }

  void compile(Part& part, const std::vector<Value>& handed) {
    if (process_.captures_forward && functions_.empty()) runner_.make_pool();
    if (holds_traced_tensors())
      for (size_t i = 0; i < handed.size(); ++i)
        if (made_eagerly_.contains(part.takes[i])) traced_with_.push_back(handed[i]);
    StepOptions options = options_;
    options.optimizer = "none";
    const auto known = functions_by_code_.find(part.range.code);
    const bool is_known = parts_.size() > 1 && known != functions_by_code_.end();
    part.compiled = std::make_unique<CompiledPart>(
        process_, program_.inputs.size(),
        compile_step(part_of(program_, part.range, part.takes, handed, part.makes), platform_, options),
        is_known ? &known->second : nullptr);
    random_state_was_set(training_.session());  // what it was before (torch/_dynamo/convert_frame.py)
    if (is_known) return;
    const PartFunctions& functions = part.compiled->functions();
    functions_by_code_[part.range.code] = functions;
    functions_.emplace_back("forward");
    if (functions.backward >= 0) functions_.emplace_back("backward");
  }

  bool holds_traced_tensors() const { return !platform_.framework.compiles_around_recurrent_networks; }

  std::vector<Value> run_eagerly(Part& part, const std::vector<Value>& inputs,
                                 const std::vector<Value>& handed) {
    if (!part.interpreter) {
      part.program = part_of(*indexed_, part.eager, part.takes, handed, part.makes);
      part.interpreter = std::make_unique<Interpreter>(
          training_.session(), part.program,
          Interpreter::Options{.strict = options_.strict, .dtype = state_dtype(options_.precision)});
    }
    std::vector<Value> all = inputs;
    all.insert(all.end(), handed.begin(), handed.end());
    return part.interpreter->run(all);
  }

  const Program& program_;
  const Platform& platform_;
  const StepOptions& options_;
  int steps_begun_ = 0;
  const Program* indexed_ = nullptr;  // as this framework indexes
  TrainingStep training_;
  CachingAllocator& allocator_;
  PoolRunner runner_;
  GraphTree tree_;
  CompiledPart::Process process_;
  std::set<ValueId> made_eagerly_;
  // What Python made and the compiler has traced with, it holds (recorded with 2.11).
  std::vector<Value> traced_with_;
  std::map<std::string, PartFunctions> functions_by_code_;
  std::vector<std::string> functions_;
  std::vector<Part> parts_;
  std::map<ValueId, size_t> last_use_;  // the part behind which nobody holds the value any more
};

// The compiler makes new memory of what is written to, and numbers part of the program.
bool is_skipped(const CaptureVerdict& verdict) {
  switch (verdict.reason) {
    case SkipReason::several_devices:
    case SkipReason::host_node:
    case SkipReason::incompatible_operator:
    case SkipReason::dynamic_sizes: return true;
    default: return false;
  }
}

}  // namespace

StepTree run_tree(const Program& program, const Platform& platform, const StepOptions& options,
                  const CaptureVerdict& forward, const CaptureVerdict& backward,
                  CachingAllocator& allocator) {
  StepTree tree =
      Steps(program, platform, options, !is_skipped(forward), !is_skipped(backward), allocator).run();
  if (tree.not_modelled.empty() && forward.reason == SkipReason::data_read)
    tree.not_modelled = "the compiler breaks the graph where the host reads data: " + forward.place.op;
  return tree;
}

}  // namespace metaprof
