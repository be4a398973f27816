// The tree of graphs: which way each call is run, how often what is written to is checked in full, and that
// numbers are those of an eager run.

#include "step/cudagraphs/tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "tests/graph/numbers_runner.h"
#include "tests/graph/random_programs.h"

namespace metaprof {
namespace {

using Kind = SmallFunction::Kind;
using Part = GraphFunction::Part;

// y = x + 2 x
SmallFunction triple() { return {.inputs = 1, .steps = {{Kind::sum, 0, 0}}, .outputs = {1}}; }
// x += w through a view of x; returns w + 2 x
SmallFunction add_into_first() {
  return {
      .inputs = 2, .steps = {{Kind::view, 0, 0}, {Kind::add_to, 2, 1}, {Kind::sum, 1, 0}}, .outputs = {4}};
}

struct Fixture {
  explicit Fixture(std::vector<SmallFunction> functions, GraphTree::Options options = {})
      : all(functions), runner(std::move(functions)), tree(runner, options) {}
  FunctionId add(size_t function, Part part = Part::inference, std::vector<size_t> fixed = {}) {
    return tree.add({.part = part,
                     .inputs = all[function].inputs,
                     .fixed = std::move(fixed),
                     .written = all[function].written()});
  }
  std::vector<SmallFunction> all;
  NumbersRunner runner;
  GraphTree tree;
};

TEST(GraphTree, WarmsUpRecordsAndReplays) {
  Fixture f({triple()});
  const FunctionId id = f.add(0);
  for (int call = 0; call < 4; ++call) {
    f.tree.begin_generation();
    const MemoryHandles out = f.tree.run(id, {f.runner.make({1.0 + call, 2})});
    EXPECT_EQ(f.runner.numbers(out[0])[0], 3.0 * (1 + call));
  }
  EXPECT_EQ(f.tree.counters().warmups, 1);
  EXPECT_EQ(f.tree.counters().recordings, 1);
  EXPECT_EQ(f.tree.counters().replays, 2);
  EXPECT_EQ(f.tree.counters().non_static_inputs, 1);  // x is copied
  // At the root, and behind its own replay: an execution is ended only when the next function is not known there.
  EXPECT_EQ(f.tree.counters().full_checks, 2);
}

// a to a: nothing is written to, and the one check of each (function, node) is enough.
TEST(GraphTree, ChecksAFunctionOncePerNodeWhileItWritesToNothing) {
  Fixture f({triple(), triple()});
  const FunctionId first = f.add(0), second = f.add(1);
  for (int call = 0; call < 10; ++call) {
    f.tree.begin_generation();
    MemoryHandles x = f.tree.run(first, {f.runner.make({1, 1})});
    f.tree.run(second, {x[0]});
  }
  // The first at the root and behind the replay of the second. The second behind the warm-up of the first, and
  // behind its recording.
  EXPECT_EQ(f.tree.counters().full_checks, 4);
  EXPECT_EQ(f.tree.counters().replays, 16);
  EXPECT_EQ(f.tree.counters().recordings, 2);
}

// b: a parameter is written to; its address stays, so that the graph may do it.
TEST(GraphTree, CapturesWhatWritesToAParameter) {
  Fixture f({add_into_first()});
  const FunctionId id = f.add(0, Part::inference, {0});
  const MemoryHandle weight = f.runner.make({1, 1});
  for (int call = 0; call < 4; ++call) {
    f.tree.begin_generation();
    f.tree.run(id, {weight, f.runner.make({2, 2})});
  }
  EXPECT_EQ(f.runner.numbers(weight)[0], 1 + 4 * 2);
  EXPECT_EQ(f.tree.counters().replays, 2);
  // At the root, before the recording, and behind its own replay.
  EXPECT_EQ(f.tree.counters().full_checks, 3);
  EXPECT_EQ(f.tree.counters().skips, 0);
  EXPECT_EQ(f.tree.nodes()[1].mutation, (std::vector<MutationKind>{MutationKind::state, MutationKind::none}));
}

// c: what an earlier graph made is written to.
TEST(GraphTree, CapturesWhatWritesToAnEarlierOutput) {
  Fixture f({triple(), add_into_first()});
  const FunctionId make = f.add(0), write = f.add(1);
  for (int call = 0; call < 4; ++call) {
    f.tree.begin_generation();
    MemoryHandles x = f.tree.run(make, {f.runner.make({1, 1})});
    const MemoryHandle one = f.runner.make({1, 1});
    EXPECT_EQ(f.tree.kinds(write, {x[0], one})[0], MutationKind::earlier);
    f.tree.run(write, {x[0], one});
    EXPECT_EQ(f.runner.numbers(x[0])[0], 4);
  }
  EXPECT_EQ(f.tree.counters().skips, 0);
  EXPECT_EQ(f.tree.counters().eager, 0);
  EXPECT_GT(f.tree.counters().replays, 0);
}

// d: an input of the user's is written to. It runs eagerly, stays so, and is checked once.
TEST(GraphTree, RunsEagerlyWhatWritesToAnythingElse) {
  Fixture f({add_into_first()});
  const FunctionId id = f.add(0);
  for (int call = 0; call < 4; ++call) {
    f.tree.begin_generation();
    const MemoryHandle x = f.runner.make({1, 1});
    EXPECT_EQ(f.tree.kinds(id, {x, x})[0], MutationKind::unmanaged);
    f.tree.run(id, {x, f.runner.make({2, 2})});
    EXPECT_EQ(f.runner.numbers(x)[0], 3);
  }
  EXPECT_EQ(f.tree.counters().eager, 4);
  EXPECT_EQ(f.tree.counters().full_checks, 1);
  EXPECT_EQ(f.tree.counters().skips, 1);  // said once
  EXPECT_EQ(f.tree.counters().recordings, 0);
}

// c to d: the recording's invariants see that the input is no longer the earlier graph's output.
TEST(GraphTree, AnEarlierOutputThatTurnsIntoSomethingElseIsCaught) {
  Fixture f({triple(), add_into_first()});
  const FunctionId make = f.add(0), write = f.add(1);
  const auto call = [&](bool from_graph) {
    f.tree.begin_generation();
    MemoryHandles x = f.tree.run(make, {f.runner.make({1, 1})});
    const MemoryHandle own = f.runner.make({5, 5}), one = f.runner.make({1, 1});
    const MemoryHandle& target = from_graph ? x[0] : own;
    const double before = f.runner.numbers(target)[0];
    f.tree.run(write, {target, one});
    EXPECT_EQ(f.runner.numbers(target)[0], before + 1);
  };
  for (int i = 0; i < 4; ++i) call(true);
  const int64_t checks = f.tree.counters().full_checks, replays = f.tree.counters().replays;
  call(false);  // d
  EXPECT_EQ(f.tree.counters().full_checks, checks + 1);
  EXPECT_EQ(f.tree.counters().eager, 1);
  // d to c: it stays d at this node, without another check. (The one check is of the first function, which was
  // never called behind itself before: the second left no node.)
  call(true);
  EXPECT_EQ(f.tree.counters().full_checks, checks + 2);
  call(true);
  EXPECT_EQ(f.tree.counters().full_checks, checks + 2);
  EXPECT_EQ(f.tree.counters().eager, 3);
  EXPECT_EQ(f.tree.counters().replays, replays + 3);  // of the first function alone
}

// A parameter that moves is recorded again; too often, and the function runs eagerly.
TEST(GraphTree, GivesUpAFunctionThatIsRecordedTooOften) {
  Fixture f({add_into_first()}, {.most_rerecordings = 2});
  const FunctionId id = f.add(0, Part::inference, {0});
  MemoryHandles weights;
  for (int call = 0; call < 8; ++call) {
    f.tree.begin_generation();
    weights.push_back(f.runner.make({1, 1}));  // a new address each time
    f.tree.run(id, {weights.back(), f.runner.make({2, 2})});
    EXPECT_EQ(f.runner.numbers(weights.back())[0], 3);
  }
  EXPECT_EQ(f.tree.counters().recordings, 3);
  EXPECT_EQ(f.tree.counters().eager, 4);
  EXPECT_EQ(f.tree.counters().skips, 1);
}

// The framework's own limit (cudagraph_unexpected_rerecord_limit in torch/_inductor/config.py): of 140 calls one warms
// up, 1 + 128 are recorded, and the 10 that are left run eagerly.
TEST(GraphTree, RecordsAFunctionAgain128Times) {
  Fixture f({add_into_first()});
  const FunctionId id = f.add(0, Part::inference, {0});
  MemoryHandles weights;
  for (int call = 0; call < 140; ++call) {
    f.tree.begin_generation();
    weights.push_back(f.runner.make({1, 1}));
    f.tree.run(id, {weights.back(), f.runner.make({2, 2})});
    EXPECT_EQ(f.runner.numbers(weights.back())[0], 3);
  }
  EXPECT_EQ(f.tree.counters().recordings, 129);
  EXPECT_EQ(f.tree.counters().eager, 10);
  EXPECT_EQ(f.tree.counters().skips, 1);
}

// The backward finds the forward's outputs where they were; a new forward waits for it.
TEST(GraphTree, ABackwardIsAChildOfItsForward) {
  Fixture f({triple(), triple()});
  const FunctionId forward = f.add(0, Part::forward), backward = f.add(1, Part::backward);
  for (int step = 0; step < 4; ++step) {
    f.tree.begin_generation();
    MemoryHandles saved = f.tree.run(forward, {f.runner.make({1, 1})});
    f.tree.run(backward, std::move(saved));
  }
  const auto nodes = f.tree.nodes();
  ASSERT_EQ(nodes.size(), 4u);  // two warm-ups, two recordings
  EXPECT_EQ(nodes[2].parent, kNoGraphNode);
  EXPECT_EQ(nodes[3].parent, 2);
  EXPECT_EQ(nodes[3].copied, 0u);  // the forward's output is where the graph finds it
  EXPECT_EQ(nodes[3].replays, 2);
}

// Two continuations of one path: the second is recorded after the pool's state was resumed.
TEST(GraphTree, ResumesThePoolToRecordAnotherContinuation) {
  Fixture f({triple(), triple(), add_into_first()});
  const FunctionId first = f.add(0), left = f.add(1), right = f.add(2);
  for (int call = 0; call < 12; ++call) {
    f.tree.begin_generation();
    MemoryHandles x = f.tree.run(first, {f.runner.make({1, 1})});
    if (call % 2 == 0) {
      EXPECT_EQ(f.runner.numbers(f.tree.run(left, {x[0]})[0])[0], 9);
    } else {
      f.tree.run(right, {x[0], f.runner.make({1, 1})});
      EXPECT_EQ(f.runner.numbers(x[0])[0], 4);
    }
  }
  EXPECT_GE(f.tree.counters().checkpoints, 1);
  EXPECT_EQ(f.tree.counters().eager, 0);
}

// What died while a graph was recorded is written over by its replay: who holds it is told.
TEST(GraphTree, AReplayRefusesToWriteOverAnOutputThatIsStillHeld) {
  Fixture f({triple(), triple()});
  const FunctionId first = f.add(0), second = f.add(1);
  for (int call = 0; call < 3; ++call) {
    f.tree.begin_generation();
    MemoryHandles x = f.tree.run(first, {f.runner.make({1, 1})});
    f.tree.run(second, std::move(x));
  }
  f.tree.begin_generation();
  const MemoryHandles held = f.tree.run(first, {f.runner.make({1, 1})});
  EXPECT_THROW(f.tree.run(second, held), Error);
}

// A forward whose backward is to come keeps its outputs in the next generation: another forward is recorded behind it.
TEST(GraphTree, ANewGenerationWaitsForABackwardThatIsToCome) {
  Fixture f({triple(), triple()});
  const FunctionId forward = f.add(0, Part::forward), backward = f.add(1, Part::backward);
  for (int step = 0; step < 2; ++step) {
    f.tree.begin_generation();
    f.tree.run(backward, f.tree.run(forward, {f.runner.make({1, 1})}));
  }
  f.tree.begin_generation();
  MemoryHandles one = f.tree.run(forward, {f.runner.make({1, 1})});
  f.tree.begin_generation();
  MemoryHandles other = f.tree.run(forward, {f.runner.make({2, 2})});
  EXPECT_EQ(f.runner.numbers(one[0])[0], 3);
  EXPECT_EQ(f.runner.numbers(other[0])[0], 6);
  const auto nodes = f.tree.nodes();
  EXPECT_EQ(nodes.back().function, forward);
  EXPECT_NE(nodes.back().parent, kNoGraphNode);
}

// Without one, the outputs of the generation before lose their memory.
TEST(GraphTree, ANewGenerationTakesTheMemoryOfTheOneBefore) {
  Fixture f({triple()});
  const FunctionId id = f.add(0);
  f.tree.begin_generation();
  const MemoryHandles held = f.tree.run(id, {f.runner.make({1, 1})});
  f.tree.begin_generation();
  f.tree.run(id, {f.runner.make({2, 2})});
  for (const auto& node : f.tree.nodes()) EXPECT_EQ(node.parent, kNoGraphNode);  // both begin anew
  EXPECT_EQ(f.tree.counters().recordings, 1);
}

TEST(GraphTree, FiveThousandRandomProgramsGiveTheNumbersOfAnEagerRun) {
  run_random_programs(5000, plain_arithmetic);
}

}  // namespace
}  // namespace metaprof
