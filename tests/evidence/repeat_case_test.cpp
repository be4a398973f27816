#include "validation/cases/repeat_case.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/evidence/case_text.h"

namespace metaprof {
namespace {

using What = CaseDifference::What;

// What differs if a part of the case is replaced: "WHAT: expected … | got …" per difference.
std::vector<std::string> differences(const std::string& text) {
  const CaseResult result = repeat_case(parse_case(text));
  std::vector<std::string> lines;
  if (!result.forward_error.empty()) lines.push_back("forward error: " + result.forward_error);
  if (!result.backward_error.empty()) lines.push_back("backward error: " + result.backward_error);
  for (const CaseDifference& d : result.differences)
    lines.push_back(std::string(to_string(d.what)) + ": expected " + d.expected + " | got " + d.got);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(OpReplay, AsRecorded) {
  const CaseResult result = repeat_case(parse_case(kSineOfDouble));
  EXPECT_EQ(result.op, "sine");
  EXPECT_TRUE(result.claimed());
  EXPECT_TRUE(result.all_equal());
  EXPECT_EQ(differences(kSineOfDouble), Lines{});
}

TEST(OpReplay, FindsAnotherOutput) {
  // The product is returned: then its node is the root.
  EXPECT_EQ(differences(with(kSineOfDouble, "# output out f32[64]g@4", "# output out f32[64]g@3"))[0],
            "saved: expected node 0 SinBackward0 1.0 | got node 0 MulBackward0 1.0 None");
  // The result of the last call is found by its storage; nothing else has that one.
  EXPECT_EQ(differences(with(kSineOfDouble, "# output out f32[64]g@4", "# output out f32[65]g@4"))[1],
            "outputs: expected out f32[65]g@4 | got out None");
}

TEST(OpReplay, FindsAnotherGraph) {
  EXPECT_EQ(differences(with(kSineOfDouble, "# node 0 SinBackward0", "# node 0 CosBackward0")),
            (Lines{"saved: expected node 0 CosBackward0 1.0 | got node 0 SinBackward0 1.0"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "MulBackward0 2.0 None", "MulBackward0 None 2.0")),
            (Lines{"saved: expected node 1 MulBackward0 None 2.0 | got node 1 MulBackward0 2.0 None"}));
}

TEST(OpReplay, FindsOtherSavedTensors) {
  // Sine's input is the product, not x.
  EXPECT_EQ(differences(with(kSineOfDouble, "0 self f32[64]g@3", "0 self f32[64]g@1")),
            (Lines{"saved: expected SinBackward0:0 self f32[64]g@1 | got SinBackward0:0 self f32[64]g@3"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "0 self f32[64]g@3", "0 self f32[8,8]g@3")),
            (Lines{"saved: expected SinBackward0:0 self f32[8,8]g@3 | got SinBackward0:0 self f32[64]g@3"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "0 self f32[64]g@3", "0 self None")),
            (Lines{"saved: expected SinBackward0:0 self None | got SinBackward0:0 self f32[64]g@3"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "0 self f32[64]g@3", "0 result f32[64]g@4")),
            (Lines{"saved: expected SinBackward0:0 result f32[64]g@4 | got not saved",
                   "saved: expected SinBackward0:0 nothing else | got SinBackward0:0 self f32[64]g@3"}));
}

TEST(OpReplay, FindsOtherAllocations) {
  EXPECT_EQ(differences(with(kSineOfDouble, "+ 4 256", "+ 4 512")),
            (Lines{"forward_events: expected + 4 512 in aten::sin (line 9) | got + 256 in aten::sin"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "+ 7 256\n", "+ 7 256\n+ 9 8\n- 9\n")),
            (Lines{"backward_events: expected + 9 8 in evaluate SinBackward0 > SinBackward0 > "
                   "aten::mul.Tensor (line 28)"
                   " | got - 6 in evaluate SinBackward0"}));
  // Who dies first: the cosine before the saved input.
  EXPECT_EQ(differences(with(with(kSineOfDouble, "- 6\n<\n- 3\n", "<\n- 3\n"), "> evaluate MulBackward0\n",
                             "> evaluate MulBackward0\n- 6\n")),
            Lines{});
  EXPECT_EQ(differences(with(kSineOfDouble, "- 7\n", "")),
            (Lines{"backward_events: expected the end | got - 7 in evaluate MulBackward0"}));
}

TEST(OpReplay, FindsOtherGradients) {
  EXPECT_EQ(differences(with(kSineOfDouble, "# grad x f32[64]@8", "# grad x f32[64]@5")),
            (Lines{"grads: expected x f32[64]@5 | got x f32[64]@8"}));
  EXPECT_EQ(differences(with(kSineOfDouble, "# grad x f32[64]@8", "# grad x None")),
            (Lines{"grads: expected x None | got x f32[64]@8"}));
}

TEST(OpReplay, UnknownOperatorsAreNotClaimed) {
  const CaseResult result =
      repeat_case(parse_case(with(kSineOfDouble, "> aten::sin f32", "> aten::no_such f32")));
  EXPECT_FALSE(result.claimed());
  EXPECT_EQ(result.missing, (std::vector<std::string>{"aten::no_such"}));
}

TEST(OpReplay, AnOperatorThatFailsMakesEverythingUnequal) {
  const CaseResult result = repeat_case(parse_case(with(kSineOfDouble, "i64[]@h2\n+", "f32[3]@2\n+")));
  EXPECT_TRUE(result.claimed());
  EXPECT_NE(result.forward_error.find("aten::mul.Tensor"), std::string::npos) << result.forward_error;
  for (int what = 0; what < kWhats; ++what) EXPECT_FALSE(result.equal(static_cast<What>(what)));
}

TEST(OpReplay, UnknownDevice) {
  try {
    repeat_case(parse_case(with(kSineOfDouble, "cuda h200", "cuda abacus")));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(": there is no device profile 'abacus'"), std::string::npos);
  }
}

TEST(OpReplay, AGradientOfNothing) {
  const auto said = [](const std::string& text) -> std::string {
    try {
      repeat_case(parse_case(text));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto of = [](const std::string& name) {
    return ":1: '" + name + "' has a gradient, but is no tensor that the case takes";
  };
  EXPECT_TRUE(said(with(kSineOfDouble, "# grad x ", "# grad w ")).ends_with(of("w")));
  EXPECT_TRUE(said(with(kSineOfDouble, "# input x f32[64]g@1", "# input x f32[64g@1")).ends_with(of("x")));
}

// What a case reads from the emulated device is always 0: nothing after it counts.
TEST(OpReplay, OnlyWhatComesBeforeAReadCounts) {
  const std::string text = R"(= shapes/nonzero/f32/64
# device cuda h200 dtype f32
# reads device memory
# input x f32[64]@1
# forward
> aten::mul.Tensor f32[64]@1 i64[]@h2
+ 3 256
< f32[64]@3
> aten::item f32[64]@3
> aten::_local_scalar_dense f32[64]@3
+ 4 12345
- 4
< 0.0
< 0.0
# output out f32[7]@9
# end
)";
  EXPECT_EQ(differences(text), Lines{});
  EXPECT_TRUE(repeat_case(parse_case(text)).cut_short);
  EXPECT_FALSE(repeat_case(parse_case(kSineOfDouble)).cut_short);
  EXPECT_EQ(
      differences(with(text, "+ 3 256", "+ 3 300")),
      (Lines{
          "forward_events: expected + 3 300 in aten::mul.Tensor (line 7) | got + 256 in aten::mul.Tensor"}));
}

TEST(OpReplay, CallsThatGaveNoGradientRanWithoutGrad) {
  const std::string text = R"(= shapes/no_grad/f32/64
# device cuda h200 dtype f32
# input x f32[64]g@1
# forward
> aten::sin f32[64]g@1
+ 2 256
< f32[64]@2
# output out f32[64]@2
# end
)";
  EXPECT_EQ(differences(text), Lines{});
}

// autocast/bf16: the bias is cast before the weight and the input, and the casts of parameters live until the
// region ends.
TEST(OpReplay, Autocast) {
  const std::string text = R"(= shapes/autocast/bf16/mm
# device cuda h200 dtype bf16
# input x f32[16,32]@1
# input w f32[32,8]g@2
# forward
> aten::mm f32[16,32]@1 f32[32,8]g@2
> aten::to.dtype f32[32,8]g@2 15 False False None
+ 3 512
< bf16[32,8]g@3
> aten::to.dtype f32[16,32]@1 15 False False None
+ 4 1024
< bf16[16,32]@4
> aten::mm bf16[16,32]@4 bf16[32,8]g@3
+ 5 256
< bf16[16,8]g@5
< bf16[16,8]g@5
- 3
# output out bf16[16,8]g@5
# roots 0.0
# node 0 MmBackward0 None 1.0
# node 1 ToCopyBackward0 2.0
# node 2 AccumulateGrad
# saved MmBackward0:0 mat2 None
# saved MmBackward0:0 self bf16[16,32]@4
# end
)";
  EXPECT_EQ(differences(text), Lines{});
  // The cast of x is 1024 bytes: 16 · 32 · 2.
  EXPECT_EQ(differences(with(text, "+ 4 1024", "+ 4 2048")),
            (Lines{"forward_events: expected + 4 2048 in aten::mm > aten::to.dtype (line 11) | got + 1024 in "
                   "aten::to.dtype > aten::_to_copy"}));
}

}  // namespace
}  // namespace metaprof
