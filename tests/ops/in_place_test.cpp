// What cannot be written in place.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

std::string refusal(const std::function<void(Session&)>& run) {
  const auto session = make_session(platform_named("cpu"));
  try {
    run(*session);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(InPlace, ResultOfAnotherKindOfNumber) {
  EXPECT_EQ(refusal([](Session& s) { call<"exp_">(s, s.empty(Sizes{2}, DType::i64)); }),
            "aten::exp_: a result of type float32 cannot be written in place to i64[2]");
  EXPECT_EQ(refusal([](Session& s) {
              call<"add_.Tensor">(s, s.empty(Sizes{2}, DType::b8), s.empty(Sizes{2}, DType::i32));
            }),
            "aten::add_.Tensor: a result of type int32 cannot be written in place to b8[2]");
}

TEST(InPlace, ResultOfTheSameKindOfNumber) {
  EXPECT_EQ(refusal([](Session& s) {
              call<"mul_.Tensor">(s, s.empty(Sizes{2}, DType::f16), s.empty(Sizes{2}, DType::f64));
            }),
            "accepted");
  EXPECT_EQ(refusal([](Session& s) {
              call<"add_.Tensor">(s, s.empty(Sizes{2}, DType::i32), s.empty(Sizes{2}, DType::i64));
            }),
            "accepted");
}

}  // namespace
}  // namespace metaprof
