// Saved tensors: what is kept, when it is let go of, hooks that pack them, and their errors.

#include "meta/autograd/engine/op_node.h"
#include "meta/autograd/graph/saved_tensor_hooks.h"
#include "meta/platform/platform.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

struct Packed final : Counted {
  explicit Packed(Tensor tensor) : tensor(std::move(tensor)) {}
  Tensor tensor;
};

class SavedTensors : public Graph {
 protected:
  // Hooks that keep the tensor itself and write down that they ran.
  std::shared_ptr<SavedTensorHooks> noting(const std::string& name) {
    auto hooks = std::make_shared<SavedTensorHooks>();
    hooks->pack = [this, name](const Tensor& tensor) -> Ref<Counted> {
      log_.push_back(name + " packs " + describe(tensor));
      return make<Packed>(tensor);
    };
    hooks->unpack = [this, name](Counted& packed) {
      log_.push_back(name + " unpacks");
      return static_cast<Packed&>(packed).tensor;
    };
    return hooks;
  }
  CallNames log_;
};

// derivatives.yaml, _trilinear: each factor is kept for the gradients of the others (wrap_opt_if).
TEST_F(SavedTensors, FactorsOfATrilinearFormAreKeptForEachOther) {
  const auto saved_with = [&](bool first, bool second) {
    Tensor a = tensor({2, 3}), b = tensor({5, 3, 4}), c = tensor({2, 4});  // 24, 240 and 32 bytes
    a->requires_grad = first;
    b->requires_grad = second;
    const int64_t before = saved();
    const Tensor y = call<"_trilinear">(*session_, a, b, c, Sizes{1, 3}, Sizes{0}, Sizes{1, 2}, Sizes{2, 3});
    return saved() - before;
  };
  EXPECT_EQ(saved_with(true, false), 240 + 32);
  EXPECT_EQ(saved_with(false, true), 24 + 32);
  EXPECT_EQ(saved_with(true, true), 24 + 240 + 32);
}

TEST_F(SavedTensors, AreTheSameStorageAndNoCopy) {
  const Tensor x = leaf({256}), y = mul(x, 2);
  const int64_t before = live();
  const Tensor z = exp(y);
  EXPECT_EQ(live(), before + 256 * 4);  // the result, which is what is kept
  EXPECT_EQ(dynamic_cast<OpNode*>(grad_fn(z))->saved(0).unpack(*grad_fn(z))->storage, z->storage);
}

// z's node keeps z; a Tensor in there would be a cycle that never dies.
TEST_F(SavedTensors, AnOutputIsKeptWithoutACycle) {
  const Tensor x = leaf({256});
  Tensor z = exp(x);
  EXPECT_EQ(grad_fn(z)->use_count(), 1U);
  z = Tensor();
  EXPECT_EQ(live(), 256 * 4);
}

TEST_F(SavedTensors, AVersionErrorNamesNodeTensorAndVersions) {
  const Tensor x = leaf({2, 3});
  const Tensor y = mul(x, 2), z = mul(y, y);
  call<"add_.Tensor">(*session_, y, 1);
  call<"add_.Tensor">(*session_, y, 1);
  EXPECT_EQ(message_of([&] { run_backward(z); }),
            "MulBackward0: a tensor that backward needs was modified in place: 'other' f32[2,3], output 0 of "
            "AddBackward0, is at version 2; expected version 0");

  const Tensor result = exp(x);
  call<"zero_">(*session_, result);
  EXPECT_EQ(
      message_of([&] { run_backward(result); }),
      "ExpBackward0: a tensor that backward needs was modified in place: 'result' f32[2,3], output 0 of "
      "ExpBackward0, is at version 1; expected version 0");

  const Tensor constant = tensor({3});
  const Tensor product = mul(x, constant);
  call<"zero_">(*session_, constant);
  EXPECT_EQ(
      message_of([&] { run_backward(product); }),
      "MulBackward0: a tensor that backward needs was modified in place: 'other' f32[3] is at version 1; "
      "expected version 0");
}

TEST_F(SavedTensors, WritesThroughAViewCountToo) {
  const Tensor x = leaf({4});
  const Tensor y = exp(x);
  call<"zero_">(*session_, call<"detach">(*session_, y));
  expect_mentions(message_of([&] { run_backward(y); }), "is at version 1; expected version 0");
}

TEST_F(SavedTensors, ASecondBackwardIsRefused) {
  const Tensor x = leaf({4}), y = exp(x);
  run_backward(y, {.retain_graph = true});
  run_backward(y);
  EXPECT_EQ(
      message_of([&] { run_backward(y); }),
      "ExpBackward0: trying to go backward through the graph a second time, but its saved tensors have been "
      "freed: use retain_graph if you need to");
}

TEST_F(SavedTensors, ANodeThatKeepsNothingCanRunTwice) {
  const Tensor x = leaf({4}), y = neg(x);
  run_backward(y);
  run_backward(y);
  EXPECT_TRUE(x.grad().defined());
}

TEST_F(SavedTensors, AreLetGoOfNodeByNode) {
  const Tensor x = leaf({256});
  Tensor y = exp(exp(exp(x)));
  EXPECT_EQ(saved(), 3 * 1024);
  CallNames order;
  const size_t begin = mark();
  run_backward(y);
  for (size_t i = begin; i < session_->trace.events.size(); ++i) {
    const Event& event = session_->trace.events[i];
    if (event.kind == Event::Kind::node || event.kind == Event::Kind::release)
      order.emplace_back(event.kind == Event::Kind::node ? "node" : "release");
  }
  EXPECT_EQ(order, (CallNames{"node", "release", "node", "release", "node", "release", "node"}));
}

TEST_F(SavedTensors, HooksPackAndUnpack) {
  const Tensor x = leaf({4});
  Tensor y;
  {
    SavedTensorHooksScope scope(*session_, noting("hook"));
    y = exp(x);
  }
  const Tensor z = exp(y);  // outside: kept as it is
  EXPECT_EQ(log_, CallNames{"hook packs f32[4]"});
  EXPECT_EQ(saved(), 4 * 4);
  run_backward(z);
  EXPECT_EQ(log_, (CallNames{"hook packs f32[4]", "hook unpacks"}));
}

TEST_F(SavedTensors, TheInnermostHooksCount) {
  const Tensor x = leaf({4});
  SavedTensorHooksScope outer(*session_, noting("outer"));
  {
    SavedTensorHooksScope inner(*session_, noting("inner"));
    exp(x);
  }
  exp(x);
  EXPECT_EQ(log_, (CallNames{"inner packs f32[4]", "outer packs f32[4]"}));
}

TEST_F(SavedTensors, PackHooksSeeNoHistory) {
  const Tensor x = leaf({4}), y = mul(x, 2);
  auto hooks = noting("");
  hooks->pack = [&](const Tensor& tensor) -> Ref<Counted> {
    EXPECT_FALSE(tensor.requires_grad());
    return make<Packed>(mul(tensor, 2));  // recorded nowhere
  };
  Tensor z;
  {
    SavedTensorHooksScope scope(*session_, hooks);
    z = exp(y);
  }
  run_backward(z);
}

TEST_F(SavedTensors, WrappedNumbersAreNotShownToHooks) {
  const Tensor x = leaf({4});
  SavedTensorHooksScope scope(*session_, noting("hook"));
  run_backward(mul(x, 2));  // keeps the number 2
  EXPECT_EQ(log_, CallNames{});
}

TEST_F(SavedTensors, HooksKeepTheWayBackForHigherDerivatives) {
  const Tensor x = leaf({4}), w = leaf({4});
  SavedTensorHooksScope scope(*session_, noting("hook"));
  const Tensor y = exp(mul(x, w));  // keeps two leaves and an output of its own node
  const Tensor first = run_grad(y, {x}, {.create_graph = true})[0];
  const Gradients second = run_grad(first, {x, w});
  EXPECT_EQ(describe(second[0]), "f32[4]");
  EXPECT_EQ(describe(second[1]), "f32[4]");
}

TEST_F(SavedTensors, APackHookMayNotWriteToItsTensor) {
  const Tensor x = leaf({4}), y = mul(x, 2);
  auto hooks = noting("");
  hooks->pack = [&](const Tensor& tensor) -> Ref<Counted> {
    call<"zero_">(*session_, tensor);
    return make<Packed>(tensor);
  };
  SavedTensorHooksScope scope(*session_, hooks);
  EXPECT_EQ(message_of([&] { exp(y); }), "ExpBackward0: a pack hook wrote to its tensor f32[4] in place");
}

TEST_F(SavedTensors, AnUnpackHookMustGiveATensor) {
  const Tensor x = leaf({4});
  auto hooks = noting("");
  hooks->unpack = [](Counted&) { return Tensor(); };
  SavedTensorHooksScope scope(*session_, hooks);
  const Tensor y = exp(x);
  EXPECT_EQ(message_of([&] { run_backward(y); }), "ExpBackward0: an unpack hook returned nothing");
}

TEST_F(SavedTensors, WhatHooksPackedIsLetGoOfAndNotAskedForAgain) {
  const Tensor x = leaf({4});
  Tensor y;
  {
    SavedTensorHooksScope scope(*session_, noting("hook"));
    y = exp(x);
  }
  run_backward(y);
  expect_mentions(message_of([&] { run_backward(y); }), "a second time");
  EXPECT_EQ(log_, (CallNames{"hook packs f32[4]", "hook unpacks"}));
}

TEST_F(SavedTensors, HooksCanBeDisabledWithAReason) {
  {
    SavedTensorHooksDisabled disabled(*session_, "this model was captured without them");
    EXPECT_EQ(message_of([&] { SavedTensorHooksScope scope(*session_, noting("")); }),
              "saved tensors cannot be packed by hooks here: this model was captured without them");
    {
      SavedTensorHooksDisabled again(*session_, "inner reason");
      expect_mentions(message_of([&] { SavedTensorHooksScope scope(*session_, noting("")); }),
                      "inner reason");
    }
    expect_mentions(message_of([&] { SavedTensorHooksScope scope(*session_, noting("")); }), "was captured");
  }
  SavedTensorHooksScope scope(*session_, noting("hook"));  // enabled again
  EXPECT_EQ(message_of([&] { SavedTensorHooksDisabled disabled(*session_, "too late"); }),
            "hooks on saved tensors cannot be disabled while there are some: too late");
}

// exp keeps its result. On the host meanwhile, it leaves the device when its handle goes, and comes back for
// its node alone.
TEST_F(SavedTensors, CanWaitOnTheHost) {
  for (const bool pinned : {false, true}) {
    session_ = make_session(platform_named("h200"));
    const Tensor x = leaf({256});
    Tensor z;
    {
      SavedTensorHooksScope scope(*session_, save_on_host(*session_, pinned));
      z = sum(exp(exp(x)));
    }
    EXPECT_EQ(live(), 256 * 4 + 4);  // x and the sum; both exponentials are on the host
    EXPECT_EQ(saved(), 0);
    const size_t begin = mark();
    run_backward(z);
    const CallNames calls = calls_since(begin);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "_to_copy"), 2);
    EXPECT_EQ(live(), 256 * 4 + 4 + 256 * 4);  // and x.grad
  }
}

TEST_F(SavedTensors, InferenceTensorsCannotBeSaved) {
  Tensor made;
  {
    Scoped<bool> inference(session_->modes.inference, true);
    made = tensor({4});
  }
  const Tensor x = leaf({4});
  EXPECT_EQ(
      message_of([&] { mul(x, made); }),
      "MulBackward0: f32[4] was made in inference mode and cannot be saved for backward: clone it outside of "
      "that mode");
  run_backward(mul(x, clone(made)));
}

// A storage counts as saved until the last node lets go of it.
TEST_F(SavedTensors, AreCountedOncePerStorageAcrossTheGraph) {
  const Tensor x = leaf({2, 128});
  const Tensor y = exp(x);
  const Tensor a = mul(y, y), b = mul(view(y, Sizes{256}), view(y, Sizes{256}));
  EXPECT_EQ(saved(), 1024);
  EXPECT_EQ(saved_tensors(*session_)[y->storage->id], 5);  // exp's result, both factors of a and of b
  run_backward(a, {.retain_graph = true});
  EXPECT_EQ(saved(), 1024);
  run_backward(b, {.retain_graph = true});
  run_backward(add(view(a, Sizes{256}), b));
  EXPECT_EQ(saved_tensors(*session_)[y->storage->id], 0);
}

TEST_F(SavedTensors, ParametersAreToldApart) {
  const Tensor weight = leaf({4, 4}), x = tensor({4, 4});
  weight->is_parameter = true;
  const Tensor y = mm(x, call<"t">(*session_, weight));
  EXPECT_TRUE(call<"t">(*session_, weight)->is_parameter);  // and so are its views
  EXPECT_FALSE(y->is_parameter);
}

}  // namespace
}  // namespace metaprof
