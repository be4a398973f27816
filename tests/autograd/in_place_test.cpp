// Writing in place: what it does to histories, what is refused, and inference mode.

#include "meta/autograd/graph/views.h"
#include "meta/platform/platform.h"
#include "tests/autograd/graph.h"

namespace metaprof {
namespace {

class InPlace : public Graph {
 protected:
  void write(const Tensor& tensor) { call<"mul_.Tensor">(*session_, tensor, 2); }
};

TEST_F(InPlace, LeavesAreRefused) {
  const Tensor x = leaf({2, 3});
  EXPECT_EQ(message_of([&] { write(x); }),
            "aten::mul_.Tensor: a leaf that requires grad cannot be written in place");
  EXPECT_EQ(message_of([&] { write(view(x, Sizes{6})); }),
            "aten::mul_.Tensor: a view of a leaf that requires grad cannot be written in place");
  Scoped<bool> no_grad(session_->modes.grad, false);
  write(x);  // as an optimizer does
  EXPECT_EQ(x->storage->version, 1U);
}

TEST_F(InPlace, OverlappingTensorsAreRefused) {
  const Tensor expanded = expand(tensor({1, 3}), Sizes{2, 3});
  for (const bool grad_mode : {true, false}) {
    Scoped<bool> mode(session_->modes.grad, grad_mode);
    EXPECT_EQ(message_of([&] { write(expanded); }),
              "aten::mul_.Tensor: several elements of f32[2,3] lie at one place in memory, so it cannot be "
              "written in place: clone it first");
    expect_mentions(message_of([&] { copy_(expanded, tensor({2, 3})); }), "lie at one place");
  }
  call<"zero_">(*session_, expanded);  // one value for all of them is fine
  write(clone(expanded));
}

TEST_F(InPlace, SeveralViewsOfOneCallAreRefused) {
  const Tensor x = leaf({2, 3}), y = neg(x);
  const Results halves = call_all<"unbind.int">(*session_, y, 0);
  expect_mentions(message_of([&] { write(halves.tensors()[0]); }), "returns several views");
}

TEST_F(InPlace, ViewsOfNoGradModeAreRefusedOutsideOfIt) {
  const Tensor x = leaf({2, 3}), y = neg(x);
  Tensor seen;
  {
    Scoped<bool> no_grad(session_->modes.grad, false);
    seen = view(y, Sizes{6});
  }
  EXPECT_TRUE(seen.requires_grad());  // what it looks into does
  expect_mentions(message_of([&] { write(seen); }), "made in no_grad mode");
  expect_mentions(message_of([&] { copy_(seen, neg(view(x, Sizes{6}))); }), "made in no_grad mode");
  Scoped<bool> no_grad(session_->modes.grad, false);
  write(seen);
}

TEST_F(InPlace, VersionsAreThoseOfTheStorage) {
  const Tensor x = tensor({2, 3}), seen = view(x, Sizes{6});
  const Tensor apart = call<"detach">(*session_, x);
  write(seen);
  write(apart);
  EXPECT_EQ(x->storage->version, 2U);
}

// The framework takes them for tensors that share no memory; their own views share the count.
TEST_F(InPlace, PiecesOfAnUnsafeSplitHaveVersionsOfTheirOwn) {
  const Tensor x = leaf({4, 3}), y = neg(x);
  const Results pieces = call_all<"unsafe_chunk">(*session_, y, 2, 0);
  const Tensor first = pieces.tensors()[0], second = pieces.tensors()[1];
  const Tensor row = select(first, 0, 0);
  write(first);
  EXPECT_EQ(first->version(), 1U);
  EXPECT_EQ(row->version(), 1U);
  EXPECT_EQ(second->version(), 0U);
  EXPECT_EQ(y->version(), 0U);
}

// On the host a cell writes the activations of its gates over pieces of one product.
TEST_F(InPlace, GatesOfARecurrentCellKeepTheirResults) {
  session_ = make_session(platform_named("cpu"));
  const Tensor x = leaf({2, 4}), h = leaf({2, 5}), input = leaf({15, 4}), hidden = leaf({15, 5});
  const Tensor y = call<"gru_cell">(*session_, x, h, input, hidden);
  const Tensor first = run_grad(y, {hidden}, {.create_graph = true})[0];
  EXPECT_EQ(describe(run_grad(first, {hidden})[0]), "f32[15,5]");
}

TEST_F(InPlace, AWriteMakesTheNextNodeOfTheHistory) {
  const Tensor x = leaf({4}), y = neg(x);
  write(y);
  EXPECT_EQ(grad_fn(y)->name(), "MulBackward0");
  EXPECT_EQ(grad_fn(y)->next[0].node->name(), "NegBackward0");
  run_backward(y);
  EXPECT_EQ(describe(x.grad()), "f32[4]");
}

TEST_F(InPlace, AWriteThroughAViewRewritesTheBase) {
  const Tensor x = leaf({4, 3}), y = neg(x);
  const Tensor row = select(y, 0, 1);
  write(row);
  EXPECT_EQ(grad_fn(y)->name(), "CopySlices");
  EXPECT_EQ(grad_fn(row)->name(), "AsStridedBackward0");
  const size_t begin = mark();
  run_backward(y);
  EXPECT_EQ(nodes_since(begin), (CallNames{"CopySlices", "NegBackward0", "AccumulateGrad"}));
  // The base's gradient is copied, the row of the copy cloned for the formula of mul, and put back.
  EXPECT_EQ(calls_since(begin),
            (CallNames{"new_empty_strided", "copy_", "as_strided", "clone", "mul.Tensor", "copy_", "neg"}));
}

TEST_F(InPlace, OtherViewsSeeTheNewHistory) {
  const Tensor x = leaf({4, 3}), y = neg(x);
  const Tensor first = select(y, 0, 0), second = select(y, 0, 1);
  write(first);
  run_backward(second);
  EXPECT_EQ(grad_fn(second)->name(), "AsStridedBackward0");
  EXPECT_EQ(describe(x.grad()), "f32[4,3]");
}

TEST_F(InPlace, AWriteOfAParameterIntoABufferBringsItsHistory) {
  const Tensor weight = leaf({3}), buffer = tensor({4, 3});
  copy_(select(buffer, 0, 2), weight);
  EXPECT_TRUE(buffer.requires_grad());
  run_backward(buffer);
  EXPECT_EQ(describe(weight.grad()), "f32[3]");
}

TEST_F(InPlace, DetachCutsTheHistoryAndRefusesViews) {
  const Tensor x = leaf({4}), y = neg(x);
  call<"detach_">(*session_, y);
  EXPECT_FALSE(y.requires_grad());
  const Tensor z = neg(x);
  expect_mentions(message_of([&] {
                    call<"detach_">(*session_, view(z, Sizes{2, 2}));
                  }),
                  "a view cannot be detached in place");
}

TEST_F(InPlace, ActivationsKeepOneBuffer) {
  const Tensor x = leaf({256}), y = neg(x);
  const int64_t before = live();
  call<"relu_">(*session_, y);
  EXPECT_EQ(live(), before);
  EXPECT_EQ(saved(), 1024);  // relu's result, which is y
  run_backward(y);
  EXPECT_EQ(describe(x.grad()), "f32[256]");
}

class InferenceMode : public InPlace {
 protected:
  Tensor made_in_inference() {
    Scoped<bool> inference(session_->modes.inference, true);
    return neg(tensor({4}));
  }
};

TEST_F(InferenceMode, RecordsNothing) {
  const Tensor x = leaf({4});
  Scoped<bool> inference(session_->modes.inference, true);
  const Tensor y = exp(x), seen = view(y, Sizes{2, 2});
  EXPECT_TRUE(y->inference);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(session_->trace.nodes.size(), 0U);
  EXPECT_FALSE(seen->base);  // a view keeps no base
  EXPECT_TRUE(seen->inference);
}

TEST_F(InferenceMode, ItsTensorsHaveNoVersions) {
  Scoped<bool> inference(session_->modes.inference, true);
  const Tensor x = neg(tensor({4}));
  write(x);
  EXPECT_EQ(x->storage->version, 0U);
}

TEST_F(InferenceMode, WritesToOrdinaryTensorsCount) {
  const Tensor x = leaf({4}), y = exp(x);
  {
    Scoped<bool> inference(session_->modes.inference, true);
    write(y);
  }
  EXPECT_EQ(y->storage->version, 1U);
  expect_mentions(message_of([&] { run_backward(y); }), "is at version 1; expected version 0");
}

TEST_F(InferenceMode, ItsTensorsCannotBeWrittenOutside) {
  const Tensor made = made_in_inference();
  for (const bool grad_mode : {true, false}) {
    Scoped<bool> mode(session_->modes.grad, grad_mode);
    EXPECT_EQ(message_of([&] { write(made); }),
              "aten::mul_.Tensor: a tensor of inference mode cannot be written in place outside of it: clone "
              "it first");
  }
}

TEST_F(InferenceMode, ItsTensorsMayBeUsedWhereNothingIsSaved) {
  const Tensor x = leaf({4});
  run_backward(add(x, made_in_inference()));
  EXPECT_EQ(describe(x.grad()), "f32[4]");
}

}  // namespace
}  // namespace metaprof
