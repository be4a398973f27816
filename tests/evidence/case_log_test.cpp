#include "validation/recordings/case_log.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "core/error.h"
#include "tests/evidence/case_text.h"

namespace metaprof {
namespace {

std::string error_of(const std::string& text) {
  TemporaryLog file(text);
  try {
    CaseLog log(file.path());
    RecordedCase recorded;
    while (log.next(recorded)) {
    }
  } catch (const Error& error) {
    std::string message = error.what();
    const size_t at = message.find(file.path());
    return at == message.npos ? message : message.replace(at, file.path().size(), "LOG");
  }
  return "no error";
}

TEST(CaseLog, ReadsACase) {
  const RecordedCase recorded = parse_case(kSineOfDouble);
  EXPECT_EQ(recorded.name, "shapes/sine/f32/64");
  EXPECT_EQ(recorded.device, "h200");
  EXPECT_EQ(recorded.dtype, "f32");
  ASSERT_EQ(recorded.inputs.size(), 1u);
  EXPECT_EQ(recorded.inputs[0].name, "x");
  ASSERT_EQ(recorded.forward.size(), 6u);
  EXPECT_EQ(recorded.forward[0].name, "aten::mul.Tensor");
  EXPECT_EQ(recorded.forward[0].text, "f32[64]g@1 i64[]@h2");
  EXPECT_EQ(recorded.forward[1].block, 3);
  EXPECT_EQ(recorded.forward[1].bytes, 256);
  EXPECT_EQ(recorded.forward[1].number, 6);  // the sixth line of the file
  ASSERT_EQ(recorded.nodes.size(), 3u);
  EXPECT_EQ(recorded.nodes[1].edges, (std::vector<std::string>{"2.0", "None"}));
  ASSERT_EQ(recorded.saved.size(), 3u);
  EXPECT_EQ(recorded.saved[2].value.kind, RecordedValue::Kind::none);
  EXPECT_TRUE(recorded.has_backward);
  EXPECT_EQ(recorded.backward[0].name, "evaluate SinBackward0");
  EXPECT_EQ(recorded.backward[2].depth, 2);
}

TEST(CaseLog, ReadsCaseAfterCase) {
  TemporaryLog file(std::string(kSineOfDouble) + with(kSineOfDouble, "shapes/sine", "shapes/again"));
  CaseLog log(file.path());
  RecordedCase recorded;
  ASSERT_TRUE(log.next(recorded));
  ASSERT_TRUE(log.next(recorded));
  EXPECT_EQ(recorded.name, "shapes/again/f32/64");
  EXPECT_FALSE(log.next(recorded));
}

TEST(CaseLog, ReadsMarks) {
  const RecordedCase cpu = parse_case(with(kSineOfDouble, "cuda h200", "cpu"));
  EXPECT_EQ(cpu.device, "cpu");
  const RecordedCase reads = parse_case(with(kSineOfDouble, "# input x", "# reads device memory\n# input x"));
  EXPECT_TRUE(reads.reads_device_memory);
  EXPECT_EQ(parse_case(with(kSineOfDouble, "# input x", "# modes attention=math\n# input x")).attention,
            "math");
  EXPECT_EQ(parse_case(with(kSineOfDouble, "sine/f32/64", "sdpa/f32/64-backendflash")).attention, "flash");
  EXPECT_EQ(parse_case(kSineOfDouble).attention, "");
  const RecordedCase fails =
      parse_case("= a/b/c\n# device cpu dtype f32\n# forward\n# backward fails RuntimeError\n# end\n");
  EXPECT_EQ(fails.backward_fails, "RuntimeError");
  EXPECT_FALSE(fails.has_backward);
}

TEST(CaseLog, ErrorsNameFileAndLine) {
  EXPECT_EQ(error_of("what is this\n"),
            "LOG:1: expected '= NAME', got 'what is this'; is this a recording of operator cases?");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n# forward\n"), "LOG:3: case a/b has no '# end'");
  EXPECT_EQ(error_of("= a/b\n# forward\n# end\n"), "LOG:1: case a/b has no '# device'");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n# forward\n> aten::t\n# end\n"),
            "LOG:5: case a/b ends within an operator");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n# forward\n> aten::t\n# backward\n<\n# end\n"),
            "LOG:5: '# backward' stands within an operator");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n+ 1 2\n"),
            "LOG:3: '+ 1 2' stands outside of forward and backward");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n# forward\n<\n"), "LOG:4: an operator ends that has not begun");
  EXPECT_EQ(error_of("= a/b\n# device cpu\n# forward\n+ x 2\n"),
            "LOG:4: '+ x 2' is not a line of a recording");
  EXPECT_EQ(error_of("= a/b\n# node 1 AddBackward0\n"), "LOG:2: node 1 where 0 was expected");
  EXPECT_EQ(error_of("= a/b\n# saved AddBackward0:0 self None\n"), "LOG:2: there is no node 0");
  EXPECT_EQ(error_of("= a/b\n# saved AddBackward0 self None\n"), "LOG:2: 'AddBackward0' is not NODE:NUMBER");
  EXPECT_EQ(error_of("= a/b\n# input x f32[2]@1 3\n"), "LOG:2: 'f32[2]@1 3' is not one value");
  EXPECT_EQ(error_of("= a/b\n# input x f32[2\n"), "LOG:2: case a/b has no '# end'");
}

TEST(CaseLog, MissingFile) {
  try {
    CaseLog log("tests/data/no_such.log.gz");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tests/data/no_such.log.gz: no such file");
  }
}

TEST(CaseLog, ReadsGzipAndNoticesWhereItBreaksOff) {
  TemporaryLog file("");
  gzFile out = gzopen(file.path().c_str(), "wb");
  for (int i = 0; i < 2000; ++i) gzputs(out, kSineOfDouble);
  gzclose(out);
  int cases = 0;
  {
    CaseLog log(file.path());
    RecordedCase recorded;
    while (log.next(recorded)) ++cases;
  }
  EXPECT_EQ(cases, 2000);
  std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) / 2);
  try {
    CaseLog log(file.path());
    RecordedCase recorded;
    while (log.next(recorded)) {
    }
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the compressed data end too early; the file is truncated"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace metaprof
