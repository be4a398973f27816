#include "tests/graph/random_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace metaprof {
namespace {

class RandomProgram {
 public:
  RandomProgram(unsigned seed, const MakeArithmetic& make_arithmetic) : random_(seed) {
    for (int i = 0; i < 3; ++i) functions_.push_back(random_function());
    graphs_ = std::make_unique<NumbersRunner>(functions_, make_arithmetic());
    eager_ = std::make_unique<NumbersRunner>(functions_, make_arithmetic());
    tree_ = std::make_unique<GraphTree>(*graphs_);
    for (const SmallFunction& function : functions_) {
      fixed_.push_back(pick(3) == 0 ? 0 : 1);  // the first input is a parameter, or none is
      tree_->add({.part = GraphFunction::Part::inference,
                  .inputs = function.inputs,
                  .fixed = fixed_.back() ? std::vector<size_t>{0} : std::vector<size_t>{},
                  .written = function.written()});
    }
    for (int i = 0; i < 2; ++i) parameters_.push_back(make());
  }

  // The same calls on both; false: numbers differ.
  bool run() {
    for (int generation = 0; generation < 8; ++generation) {
      tree_->begin_generation();
      std::vector<Pair> alive;
      const int calls = 1 + static_cast<int>(pick(3));
      for (int call = 0; call < calls; ++call)
        if (!run_one(alive)) return false;
    }
    return true;
  }
  GraphTreeCounters counters() const { return tree_->counters(); }
  std::vector<GraphTree::Node> nodes() const { return tree_->nodes(); }

 private:
  struct Pair {
    MemoryHandle graph, eager;
  };
  size_t pick(size_t below) { return random_() % below; }

  SmallFunction random_function() {
    SmallFunction function;
    function.inputs = 2;
    const size_t steps = 1 + pick(5);
    for (size_t i = 0; i < steps; ++i) {
      const size_t values = function.inputs + i;
      function.steps.push_back({static_cast<SmallFunction::Kind>(pick(3)), pick(values), pick(values)});
    }
    function.steps.push_back({SmallFunction::Kind::sum, pick(2), pick(function.inputs + steps)});
    function.outputs = {function.inputs + steps};
    // Not what looks into an input: a compiler makes such outputs anew from the input.
    const size_t second = function.inputs + pick(steps);
    if (pick(2) == 0 && function.owners()[second] >= function.inputs) function.outputs.push_back(second);
    return function;
  }

  Pair make() {
    const double value = static_cast<double>(pick(9)) + 1;
    return {graphs_->make({value, -value}), eager_->make({value, -value})};
  }
  bool equal(const Pair& pair) const { return graphs_->numbers(pair.graph) == eager_->numbers(pair.eager); }

  bool run_one(std::vector<Pair>& alive) {
    const size_t f = pick(functions_.size());
    std::vector<Pair> inputs;
    for (size_t i = 0; i < functions_[f].inputs; ++i) {
      if (i == 0 && fixed_[f] != 0)
        inputs.push_back(parameters_[f % 2]);
      else
        inputs.push_back(alive.empty() || pick(3) == 0 ? make() : alive[pick(alive.size())]);
    }
    // Inputs of one call do not share memory: a copy would.
    if (inputs[0].graph == inputs[1].graph) inputs[1] = make();
    const auto id = static_cast<FunctionId>(f);
    const MemoryHandles graph = tree_->run(id, {inputs[0].graph, inputs[1].graph});
    const MemoryHandles eager = eager_->run_eagerly(id, {inputs[0].eager, inputs[1].eager});
    for (size_t i = 0; i < graph.size(); ++i) {
      alive.push_back({graph[i], eager[i]});
      if (!equal(alive.back())) return false;
    }
    return std::ranges::all_of(inputs, [&](const Pair& pair) { return equal(pair); }) &&
           std::ranges::all_of(alive, [&](const Pair& pair) { return equal(pair); }) &&
           std::ranges::all_of(parameters_, [&](const Pair& pair) { return equal(pair); });
  }

  std::mt19937 random_;
  std::vector<SmallFunction> functions_;
  std::unique_ptr<NumbersRunner> graphs_, eager_;
  std::unique_ptr<GraphTree> tree_;
  std::vector<int> fixed_;
  std::vector<Pair> parameters_;
};

}  // namespace

void run_random_programs(unsigned programs, const MakeArithmetic& make_arithmetic) {
  GraphTreeCounters all;
  std::array<int64_t, 4> kinds = {};
  for (unsigned seed = 0; seed < programs; ++seed) {
    RandomProgram program(seed, make_arithmetic);
    ASSERT_TRUE(program.run()) << "seed " << seed;
    all.replays += program.counters().replays;
    all.recordings += program.counters().recordings;
    all.checkpoints += program.counters().checkpoints;
    kinds[3] += program.counters().eager;
    for (const GraphTree::Node& node : program.nodes())
      for (const MutationKind kind : node.mutation) ++kinds[static_cast<size_t>(kind)];
  }
  const auto many = static_cast<int64_t>(programs);
  EXPECT_GT(all.replays, many);
  EXPECT_GT(all.recordings, many);
  EXPECT_GT(all.checkpoints, many / 10);
  for (const int64_t kind : kinds) EXPECT_GT(kind, many / 10);  // a, b, c, d
}

}  // namespace metaprof
