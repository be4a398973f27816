#pragma once
// Runs a program's graph on meta tensors: prepared once, run many times.

#include <map>
#include <set>

#include "meta/op/call.h"
#include "meta/program/program.h"

namespace metaprof {

class Interpreter {
 public:
  struct Options {
    bool strict = false;  ///< an operator without a record is an Error instead of an unmodelled call
    std::string
        checkpoint;  ///< modules whose forward is checkpointed: wildcards within the segments of a path
    bool checkpoint_reentrant = false;
    bool training = true;       ///< false: dropout and batch norm as in eval mode, whatever the export says
    DType dtype = DType::f32;   ///< of the parameters, where the export has f32
    bool other_dtypes = false;  ///< tensors have other dtypes than in the export: 16 bits, or autocast
  };
  Interpreter(Session& session, const Program& program, Options options);
  ~Interpreter();

  /// A higher-order operator that is the graph inside it, run in some mode ("higher_order::…").
  static bool runs_inside(std::string_view op);

  /// Runs the graph on these inputs (paired with the graph's inputs). Returns its outputs.
  std::vector<Value> run(const std::vector<Value>& inputs);

 private:
  struct Region;    // consecutive steps that are checkpointed together
  struct Prepared;  // a graph: operators found, arguments placed, lifetimes known
  struct Step;
  Prepared& prepare(const Graph& graph);
  void prepare_regions(Prepared& prepared);
  std::pair<size_t, std::string> region_at(const GraphNode& node) const;
  void run_steps(const Prepared& prepared, size_t begin, size_t end, std::vector<Value>& values);
  void run_region(const Prepared& prepared, const Region& region, std::vector<Value>& values);
  std::vector<Value> run_again(const Prepared& prepared, const Region& region, std::vector<Value> values);
  void prepare_step(Prepared& prepared, const GraphNode& node);
  std::vector<Value> run(const Prepared& prepared, const std::vector<Value>& inputs);
  void run_step(const Prepared& prepared, const Step& step, std::vector<Value>& values);
  void run_higher_order(const Prepared& prepared, const Step& step, std::vector<Value>& values);
  void run_unmodelled(const Prepared& prepared, const Step& step, std::vector<Value>& values);
  Value adapt(const Argument& argument, const Step& step, Value value,
              const std::vector<Value>& values) const;
  void find_index_lists(Step& step) const;
  void move_lists(const Step& step, std::span<Value> given) const;
  void resize_arguments(const Prepared& prepared, const Step& step, std::span<Value> given) const;
  SizesView exported_sizes(const Prepared& prepared, const GraphNode& node) const;
  void store(const Step& step, ResultList results, std::vector<Value>& values);
  void move_to_modules(int32_t stack);
  Value evaluate(const Operand& operand, const std::vector<Value>& values) const;

  Session& session_;
  const Program& program_;
  Options options_;
  std::set<ValueId> made_on_host_;
  std::map<const Graph*, std::unique_ptr<Prepared>> prepared_;
  std::vector<std::vector<std::pair<std::string, uint32_t>>> module_paths_;  // per module stack: (key, text)
  int32_t modules_ = -1;  // the module stack that is entered
};

/// Calls an operator that has no record: results as the program's own record describes them. It is marked in
/// the trace, and its gradients have the sizes of its arguments; nothing else is known of it.
ResultList call_unmodelled(Session& session, std::string_view op, const std::vector<Value>& arguments,
                           const std::vector<TensorFacts>& results);

}  // namespace metaprof
