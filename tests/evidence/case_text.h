#pragma once
// Recorded cases written by hand, and recordings as files of a test.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "validation/recordings/case_log.h"

namespace metaprof {

/// A file in the test's own folder of the temporary folder; gone at the end of the test.
class TemporaryLog {
 public:
  explicit TemporaryLog(const std::string& text) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("metaprof_") + test->test_suite_name() + "_" + test->name() + ".log");
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryLog() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The only case of a text.
inline RecordedCase parse_case(const std::string& text) {
  TemporaryLog file(text);
  CaseLog log(file.path());
  RecordedCase recorded;
  EXPECT_TRUE(log.next(recorded));
  return recorded;
}

/// x · 2, then its sine, as PyTorch 2.11 does it on a GPU: the number arrives as a host tensor; sine keeps
/// its input, whose handle in Python is gone when the function returns.
inline const char* const kSineOfDouble = R"(= shapes/sine/f32/64
# device cuda h200 dtype f32
# input x f32[64]g@1
# forward
> aten::mul.Tensor f32[64]g@1 i64[]@h2
+ 3 256
< f32[64]g@3
> aten::sin f32[64]g@3
+ 4 256
< f32[64]g@4
# output out f32[64]g@4
# roots 0.0
# node 0 SinBackward0 1.0
# node 1 MulBackward0 2.0 None
# node 2 AccumulateGrad
# saved SinBackward0:0 self f32[64]g@3
# saved MulBackward0:1 other i64[]@h2
# saved MulBackward0:1 self None
# incoming out f32[64]@5
# backward
> evaluate SinBackward0
> SinBackward0 #node
> aten::cos f32[64]g@3
+ 6 256
< f32[64]@6
> aten::mul.Tensor f32[64]@5 f32[64]@6
+ 7 256
< f32[64]@7
- 6
<
- 3
<
> evaluate MulBackward0
> MulBackward0 #node
> aten::mul.Tensor f32[64]@7 i64[]@h2
+ 8 256
< f32[64]@8
<
- 7
<
> evaluate AccumulateGrad
> AccumulateGrad #node
<
<
# grad x f32[64]@8
# end
)";

/// The text with one part replaced; the part must be there.
inline std::string with(std::string text, const std::string& part, const std::string& replacement) {
  const size_t at = text.find(part);
  EXPECT_NE(at, text.npos) << part;
  return text.replace(at, part.size(), replacement);
}

}  // namespace metaprof
