// Checkpointing: what a region keeps, when it is computed again, how far, and what selective policies change.

#include "meta/autograd/modes/checkpoint.h"

#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/autograd/graph/state.h"
#include "meta/platform/platform.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class Checkpoints : public Graph {
 protected:
  static Value::Tensors none() { return {}; }

  Tensor region(const RegionBody& body, const Tensor& input, const CheckpointOptions& options = {}) {
    return checkpoint(*session_, body, {Value(input)}, options)[0].tensor();
  }
  /// exp of exp of … of its input; notes each time that it is run.
  RegionBody exponentials(int count) {
    return [this, count](const std::vector<Value>& inputs) {
      ++runs_;
      Tensor value = inputs[0].tensor();
      for (int i = 0; i < count; ++i) value = exp(value);
      return std::vector<Value>{Value(value)};
    };
  }
  /// Calls that were made to compute a region again, by operator.
  CallNames computed_again() const {
    CallNames names;
    for (const CallRecord& call : session_->trace.calls)
      if (call.phase == Phase::recompute && call.depth == 0)
        names.emplace_back(session_->trace.text(call.op).substr(std::string_view("aten::").size()));
    return names;
  }
  int runs_ = 0;
};

TEST_F(Checkpoints, KeepTheInputAndNothingElse) {
  for (const bool reentrant : {false, true}) {
    SCOPED_TRACE(reentrant);
    session_ = make_session(platform_named("h200"));
    runs_ = 0;
    const Tensor x = leaf({256});
    const Tensor y = region(exponentials(3), x, {.reentrant = reentrant});
    EXPECT_EQ(saved(), 256 * 4);           // x
    EXPECT_EQ(live(), 256 * 4 + 256 * 4);  // x and y
    run_backward(y);
    EXPECT_EQ(runs_, 2);
    EXPECT_EQ(describe(x.grad()), "f32[256]");
    EXPECT_EQ(saved(), 0);
  }
}

// The node of the last exponential asks for its result: all three are computed again, and nothing after the
// last tensor that was saved.
TEST_F(Checkpoints, StopEarly) {
  const RegionBody body = [](const std::vector<Value>& inputs) {
    const Tensor kept = exp(inputs[0].tensor());  // kept: its result
    return std::vector<Value>{Value(neg(neg(kept)))};
  };
  {
    const Tensor x = leaf({256});
    run_backward(region(body, x));
    EXPECT_EQ(computed_again(), CallNames{"exp"});
  }
  session_ = make_session(platform_named("h200"));
  const Tensor again = leaf({256});
  run_backward(region(body, again, {.early_stop = false}));
  EXPECT_EQ(computed_again(), (CallNames{"exp", "neg", "neg"}));
}

TEST_F(Checkpoints, ComputeAgainOncePerBackward) {
  const Tensor x = leaf({256});
  const Tensor y = region(exponentials(2), x);
  run_backward(y, {.retain_graph = true});
  EXPECT_EQ(runs_, 2);
  run_backward(y);
  EXPECT_EQ(runs_, 3);
  expect_mentions(message_of([&] { run_backward(y); }), "a second time");
}

// As PyTorch's: outside of a backward nobody says which reads belong together.
TEST_F(Checkpoints, ComputeAgainForEveryTensorThatIsReadOutsideOfABackward) {
  const Tensor x = leaf({256});
  const Tensor y = region(exponentials(2), x);
  auto& last = static_cast<OpNode&>(*grad_fn(y));
  EXPECT_EQ(describe(last.saved(0).unpack(last)), "f32[256]");
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(describe(last.saved(0).unpack(last)), "f32[256]");
  EXPECT_EQ(runs_, 3);
  run_backward(y);
  EXPECT_EQ(runs_, 4);
}

TEST_F(Checkpoints, RecomputedTensorsGoAsTheirNodesHaveRun) {
  const Tensor x = leaf({256});
  const Tensor y = region(exponentials(3), x);
  const size_t begin = mark();
  run_backward(y);
  // x, y, the gradient of the root, three results computed again, and one more gradient while a node runs.
  EXPECT_EQ(peak_bytes(*session_, begin), 7 * 1024);
}

// The inner region's input is kept by the outer region, so that it takes both to be computed again.
TEST_F(Checkpoints, Nest) {
  int inner_runs = 0;
  const RegionBody inner = [&](const std::vector<Value>& inputs) {
    ++inner_runs;
    return std::vector<Value>{Value(exp(exp(inputs[0].tensor())))};
  };
  const RegionBody outer = [&](const std::vector<Value>& inputs) {
    ++runs_;
    const Tensor first = exp(inputs[0].tensor());
    const Tensor second = checkpoint(*session_, inner, {Value(first)})[0].tensor();
    return std::vector<Value>{Value(exp(second))};
  };
  const Tensor x = leaf({256});
  const Tensor y = region(outer, x);
  EXPECT_EQ(saved(), 1024);  // x alone
  EXPECT_EQ(inner_runs, 1);
  run_backward(y);
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(inner_runs, 3);  // forward; again inside the outer region; again for its own tensors
  EXPECT_EQ(describe(x.grad()), "f32[256]");
  EXPECT_TRUE(autograd_state(*session_).saved_tensor_hooks.empty());
}

TEST_F(Checkpoints, NestThreeDeep) {
  RegionBody body = exponentials(2);
  for (int depth = 0; depth < 2; ++depth)
    body = [this, body](const std::vector<Value>& inputs) { return checkpoint(*session_, body, inputs); };
  const Tensor x = leaf({256});
  run_backward(region(body, x));
  EXPECT_EQ(describe(x.grad()), "f32[256]");
  EXPECT_TRUE(autograd_state(*session_).saved_tensor_hooks.empty());
}

TEST_F(Checkpoints, AnErrorInARegionLeavesNoHooksBehind) {
  const RegionBody broken = [&](const std::vector<Value>& inputs) {
    if (++runs_ == 2) fail("the region fails");
    return std::vector<Value>{Value(exp(inputs[0].tensor()))};
  };
  const Tensor x = leaf({4}), y = region(broken, x);
  EXPECT_EQ(message_of([&] { run_backward(y); }), "the region fails");
  EXPECT_TRUE(autograd_state(*session_).saved_tensor_hooks.empty());
  EXPECT_EQ(autograd_state(*session_).selective, nullptr);
}

TEST_F(Checkpoints, ARegionMustSaveTheSameAgain) {
  const RegionBody more = [&](const std::vector<Value>& inputs) {
    const Tensor x = inputs[0].tensor();
    return std::vector<Value>{Value(++runs_ == 1 ? exp(x) : exp(exp(x)))};
  };
  const RegionBody fewer = [&](const std::vector<Value>& inputs) {
    const Tensor x = inputs[0].tensor();
    return std::vector<Value>{Value(++runs_ == 1 ? exp(exp(x)) : neg(x))};
  };
  const Tensor x = leaf({4});
  Tensor y = region(more, x, {.early_stop = false});
  EXPECT_EQ(message_of([&] { run_backward(y); }),
            "checkpoint: the region saved more tensors when it was computed again");
  runs_ = 0;
  y = region(fewer, x);
  expect_mentions(message_of([&] { run_backward(y); }), "was not saved when the region was computed again");
}

TEST_F(Checkpoints, AReentrantRegionGetsZerosForOutputsThatNobodyUsed) {
  const RegionBody two = [](const std::vector<Value>& inputs) {
    const Tensor x = inputs[0].tensor();
    return std::vector<Value>{Value(exp(x)), Value(neg(x))};
  };
  const Tensor x = leaf({4});
  const std::vector<Value> outputs = checkpoint(*session_, two, {Value(x)}, {.reentrant = true});
  const size_t begin = mark();
  run_backward(outputs[0].tensor());
  EXPECT_EQ(calls_since(begin)[0], "zeros");
  EXPECT_EQ(describe(x.grad()), "f32[4]");
}

TEST_F(Checkpoints, WithoutGradModeAreJustCalls) {
  Scoped<bool> no_grad(session_->modes.grad, false);
  region(exponentials(2), leaf({4}));
  EXPECT_EQ(saved(), 0);
}

TEST_F(Checkpoints, RecomputedFlopsAreThoseOfRecomputation) {
  const Tensor w = leaf({64, 64}), x = leaf({32, 64});
  const RegionBody body = [&](const std::vector<Value>& inputs) {
    return std::vector<Value>{Value(exp(mm(exp(mm(inputs[0].tensor(), w)), w)))};
  };
  run_backward(region(body, x));
  int64_t forward = 0, again = 0;
  for (const CallRecord& call : session_->trace.calls)
    (call.phase == Phase::recompute ? again : forward) += call.counted.count;
  const int64_t product = int64_t{2} * 32 * 64 * 64;
  EXPECT_EQ(again, 2 * product);
  EXPECT_EQ(forward, 2 * product + 4 * product);  // and of backward, which has no phase here
}

// --- Selective: results of matrix products are kept, the rest is computed again.

CheckpointPolicyFunction keep(std::string_view op,
                              CheckpointPolicy otherwise = CheckpointPolicy::prefer_recompute) {
  return [op, otherwise](const Call& call, bool) {
    return call.op.name == op ? CheckpointPolicy::must_save : otherwise;
  };
}

class SelectiveCheckpoints : public Checkpoints {
 protected:
  const Tensor w_ = leaf({256, 256});
  RegionBody layer() {
    return [this](const std::vector<Value>& inputs) {
      ++runs_;
      return std::vector<Value>{Value(exp(mm(exp(inputs[0].tensor()), w_)))};
    };
  }
};

TEST_F(SelectiveCheckpoints, KeepWhatThePolicySays) {
  const Tensor x = leaf({64, 256});
  const int64_t unit = int64_t{64} * 256 * 4;
  Tensor plain = region(layer(), x);
  int64_t before = live();
  plain = Tensor();
  const int64_t without = before - live();

  before = live();
  const Tensor y = region(layer(), x, {.policy = keep("aten::mm")});
  EXPECT_EQ(live() - before, without + unit);  // the product, too
  run_backward(y);
  EXPECT_EQ(computed_again(), (CallNames{"exp", "exp"}));  // and no mm
  EXPECT_EQ(describe(x.grad()), "f32[64,256]");
}

TEST_F(SelectiveCheckpoints, ComputeEverythingAgainIfThePolicySaysSo) {
  const Tensor x = leaf({64, 256});
  run_backward(region(layer(), x, {.policy = keep("", CheckpointPolicy::must_recompute)}));
  EXPECT_EQ(computed_again(), (CallNames{"exp", "mm", "exp"}));
}

TEST_F(SelectiveCheckpoints, PreferSaveSavesToo) {
  const Tensor x = leaf({64, 256});
  run_backward(region(layer(), x, {.policy = keep("", CheckpointPolicy::prefer_save)}));
  EXPECT_EQ(computed_again(), CallNames{});
}

TEST_F(SelectiveCheckpoints, AskAgainWhileComputingAgain) {
  std::vector<bool> asked;
  const Tensor x = leaf({64, 256});
  run_backward(region(layer(), x, {.policy = [&](const Call& call, bool again) {
                        if (call.op.name == "aten::mm") asked.push_back(again);
                        return CheckpointPolicy::prefer_recompute;
                      }}));
  EXPECT_EQ(asked, (std::vector<bool>{false, true}));
}

TEST_F(SelectiveCheckpoints, APolicyMustAnswerTheSameAgain) {
  const Tensor x = leaf({64, 256});
  const Tensor y = region(layer(), x, {.policy = [](const Call&, bool again) {
                            return again ? CheckpointPolicy::must_save : CheckpointPolicy::must_recompute;
                          }});
  expect_mentions(message_of([&] { run_backward(y); }),
                  "aten::exp: selective checkpoint: the call was not kept in forward");
  EXPECT_EQ(autograd_state(*session_).selective, nullptr);
}

TEST_F(SelectiveCheckpoints, AllowOneBackwardOnly) {
  const Tensor x = leaf({64, 256});
  const Tensor y = region(layer(), x, {.policy = keep("aten::mm")});
  run_backward(y, {.retain_graph = true});
  expect_mentions(message_of([&] { run_backward(y); }),
                  "aten::mm: selective checkpoint: the region is computed a second time");
}

TEST_F(SelectiveCheckpoints, KeptResultsMayNotBeWritten) {
  const RegionBody body = [&](const std::vector<Value>& inputs) {
    const Tensor product = mm(inputs[0].tensor(), w_);
    call<"add_.Tensor">(*session_, product, 1);
    return std::vector<Value>{Value(exp(product))};
  };
  const Tensor x = leaf({64, 256});
  const Tensor y = region(body, x, {.policy = keep("aten::mm")});
  expect_mentions(message_of([&] { run_backward(y); }), "a kept result was written in place");
}

// A selective checkpoint is a dispatch mode, in which `linear` of an input that is not contiguous adds its bias out of
// place (aten/src/ATen/native/Linear.cpp); of one that is, it is one addmm all the same.
TEST_F(SelectiveCheckpoints, LinearAddsItsBiasOutOfPlace) {
  const Tensor bias = leaf({256}), x = leaf({4, 64, 256});
  // How often the operator is called when the region is computed again.
  const auto calls_of = [&](std::string_view op, bool is_contiguous, const CheckpointOptions& options) {
    const size_t before = session_->trace.calls.size();
    const RegionBody body = [&](const std::vector<Value>& inputs) {
      const Tensor input = inputs[0].tensor();
      return std::vector<Value>{
          Value(exp(call<"linear">(*session_, is_contiguous ? input : transpose(input, 0, 1), w_, bias)))};
    };
    run_backward(region(body, x, options));
    return std::count_if(session_->trace.calls.begin() + static_cast<std::ptrdiff_t>(before),
                         session_->trace.calls.end(), [&](const CallRecord& one) {
                           return one.phase == Phase::recompute && session_->trace.text(one.op) == op;
                         });
  };
  const CheckpointOptions selective{.policy = keep("")};
  EXPECT_EQ(calls_of("aten::addmm", true, selective), 1);
  EXPECT_EQ(calls_of("aten::add_.Tensor", false, {}), 1);
  EXPECT_EQ(calls_of("aten::add_.Tensor", false, selective), 0);
  EXPECT_EQ(calls_of("aten::add.Tensor", false, selective), 1);
}

TEST_F(SelectiveCheckpoints, AreNotReentrant) {
  EXPECT_EQ(message_of([&] {
              region(layer(), leaf({64, 256}), {.reentrant = true, .policy = keep("aten::mm")});
            }),
            "checkpoint: a reentrant one computes everything again");
}

// Regions inside others: hooks of save_on_host pack the region's input; the region's tensors are
// placeholders.
TEST_F(Checkpoints, OnTheHost) {
  const Tensor x = leaf({256});
  const Tensor h = neg(x);
  Tensor y;
  {
    SavedTensorHooksScope scope(*session_, save_on_host(*session_));
    y = region(exponentials(2), h);
  }
  EXPECT_EQ(saved(), 0);
  run_backward(y);
  EXPECT_EQ(describe(x.grad()), "f32[256]");
}

}  // namespace
}  // namespace metaprof
