#pragma once
// Runs a program on tensors without data: every call in order, and after each the values go that the program
// drops there. A graph is made ready once and run many times.

#include <map>
#include <memory>
#include <utility>

#include "meta/session/call.h"
#include "step/eager/code.h"

namespace metaprof {

class AutocastRegion;
class Node;
class Optimizer;
class SavedTensorHooksScope;
class StepArguments;

class Interpreter {
 public:
  struct Options {
    bool strict = false;  ///< an operator without a record is an Error instead of an unmodelled call
    bool training =
        true;  ///< false: dropout and batch norm as in eval mode, although the program was exported in training mode
    DType dtype = DType::f32;                   ///< of the parameters, where the program has f32
    std::vector<RecomputeRegion> regions = {};  ///< in place of the program's checkpoints, unless empty
    bool condition = true;                      ///< what torch.cond is told
    int trips = 1;                              ///< of while_loop
    bool moves_indices =
        true;  ///< as Python does before it indexes; false: operators get them where they are
  };
  /// Session and program outlive the interpreter.
  Interpreter(Session& session, const Program& program, Options options);
  ~Interpreter();

  /// Runs the graph on these inputs (paired with the graph's inputs). Returns its outputs; of a captured
  /// program, which has none, all that it holds in the end.
  std::vector<Value> run(const std::vector<Value>& inputs);

  /// The module stack (of the program) of the last call that was run, whose modules are still entered; -1: none.
  int32_t open_modules() const { return modules_; }

  /// The graph of a custom function's backward, on its inputs. `node`: which may be told to give back what it has
  /// saved. `gradients`: that it was given, and may be told to let go. Errors: as run.
  std::vector<Value> run_backward_of_function(Node& node, Gradients& gradients, const Graph& graph,
                                              std::vector<Value> inputs);

  /// What a hook of this number gives in place of the gradients, in the backward that runs; empty: nothing.
  std::vector<Tensor> run_hook(int64_t number, std::vector<Tensor> gradients);

 private:
  using Values = std::vector<Value>;  // by ValueId

  const Code& code_of(const Graph& graph);
  Values run(const Code& code, Values inputs);
  void run_instructions(const Code& code, size_t begin, size_t end, Values& values);
  void note_node(size_t first_event, size_t node);
  void keep(const Values& values);
  void let_kept_go(const GraphNode& node);
  void run_instruction(const Code& code, const Instruction& instruction, Values& values);
  void run_call(const Code& code, const Instruction& instruction, Values& values);
  void run_out(const Instruction& instruction, Values& values);
  void run_region(const Instruction& instruction, Values& values);
  struct RegionInputs {
    Values values;
    std::vector<size_t> in_operand;  // how many of them each operand has
  };
  static void check_loop(const RegionCall& region, const RegionInputs& inputs);
  RegionInputs inputs_of(const GraphNode& node, const RegionCall& region, const Values& values) const;
  void run_unmodelled(const Code& code, const Instruction& instruction, Values& values);
  void run_collective(const Code& code, const Instruction& instruction, Values& values);
  void make_recorded_results(const Code& code, const GraphNode& node, Values& values, bool is_known);
  void store(const GraphNode& node, ResultList results, Values& values);
  void move_to_modules(int32_t stack);
  [[noreturn]] void refuse_assumed(const GraphNode& node) const;
  [[noreturn]] void explain(const Error& error) const;

  // Regions that are computed again or kept on the host (regions.cpp).
  void run_stretch(const Code& code, const std::vector<Code::Region>& regions, size_t begin, size_t end,
                   Values& values);
  void run_one(const Code& code, const Code::Region& region, Values& values);
  void run_checkpoint(const Code& code, const Code::Region& region, Values& values);
  Values run_again(const Code& code, const Code::Region& region, Values values);

  // What no operator does (step_calls.cpp).
  void run_step_call(const Code& code, const Instruction& instruction, Values& values);
  void as_recorded(const Code& code, const GraphNode& node, Values& values, std::string_view why);
  void run_memory_call(StepCall call, const StepArguments& given);
  void run_mode_call(StepCall call, const StepArguments& given);
  void begin_phase(Phase phase, int64_t step, int64_t micro);
  void note_loss(const std::vector<Tensor>& roots);
  void leave_function(const GraphNode& node, const Values& values);  // functions.cpp
  void clear_saved();
  void clear_gradients();
  void place_weights(const GraphNode& node, const StepArguments& given);
  void run_optimizer(int64_t number, const std::string& what, const std::string& name,
                     const std::string& implementation, std::vector<Tensor> parameters);
  static const TensorFacts& facts_of_result(const Code& code, const GraphNode& node);
  Tensor made_tensor(const TensorFacts& facts) const;
  void hold_integers(const Tensor& list, const Value& numbers);
  Tensor made_alias(const Code& code, const GraphNode& node, const Tensor& of) const;
  void name_tensor(const std::string& purpose, const std::string& name, const Tensor& tensor);

  // Calls that hooks make within a backward (within_backward.cpp).
  class WithinBackward;
  friend class WithinBackward;
  void add_hook(int64_t number, const std::string& kind, const Tensor& tensor);

  void resize_storage(const Tensor& tensor, int64_t bytes);
  void record_stream(const Tensor& tensor, uint16_t stream);
  void leave_versions();
  void empty_cache();

  // What operands become (arguments.cpp).
  Value evaluate(const Operand& operand, const Values& values) const;
  Value adapt(const Instruction& instruction, Instruction::Place place, Value value,
              const Values& values) const;
  void move_index_lists(const Instruction& instruction, std::span<Value> given) const;
  void copy_to_view(std::span<Value> given) const;
  void resize_arguments(const Code& code, const Instruction& instruction, std::span<Value> given) const;
  SizesView exported_sizes(const Code& code, const GraphNode& node) const;

  Session& session_;
  const Program& program_;
  const Options options_;
  std::map<const Graph*, std::unique_ptr<const Code>> codes_;
  std::map<ValueId, std::vector<Value>> kept_;  // of the run before, by what takes their place
  std::vector<std::vector<std::pair<std::string, uint32_t>>> module_paths_;  // per module stack: (key, text)
  int32_t modules_ = -1;              // the module stack that is entered
  std::map<uint32_t, size_t> named_;  // parameters and buffers: text -> index into the trace's
  std::vector<std::unique_ptr<AutocastRegion>> autocast_;  // that a captured program has entered
  std::vector<bool> functions_;  // custom functions whose forward runs: whether gradients were on before it
  std::vector<std::vector<std::pair<Tensor, uint32_t>>> versions_;     // that are kept, innermost last
  std::vector<std::pair<Node*, Gradients*>> backwards_of_functions_;   // that run, innermost last
  std::vector<WithinBackward*> within_;                                // backwards that run, innermost last
  std::vector<std::unique_ptr<SavedTensorHooksScope>> saved_on_host_;  // that a captured program has entered
  std::map<int64_t, std::unique_ptr<Optimizer>>
      optimizers_;  // in place of a captured program's own, by number
};

}  // namespace metaprof
