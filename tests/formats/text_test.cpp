// UTF-8, JSON strings, cursors, files, lines of gzip files, members.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/gzip_lines.h"
#include "core/formats/json_member.h"
#include "core/formats/json_string.h"
#include "core/formats/text_cursor.h"
#include "core/utf8.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

template <class Function>
std::string error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Utf8, LengthOfTheFirstCharacter) {
  struct Case {
    const char* text;
    size_t length;
  };
  const Case cases[] = {
      {"a", 1},
      {"\x7f", 1},
      {"ä", 2},
      {"→", 3},
      {"𝄞", 4},
      {"\xf4\x8f\xbf\xbf", 4},
      {"\x80", 0},  // goes on, and nothing began
      {"\xc3", 0},
      {"\xe2\x86", 0},  // cut off
      {"\xc3z", 0},
      {"\xe2\x86z", 0},
      {"\xc0\xaf", 0},
      {"\xe0\x9f\xbf", 0},
      {"\xf0\x8f\xbf\xbf", 0},  // overlong
      {"\xed\xa0\x80", 0},      // a surrogate
      {"\xf4\x90\x80\x80", 0},
      {"\xff", 0},  // beyond U+10FFFF
  };
  for (const Case& c : cases) EXPECT_EQ(utf8_length(c.text), c.length) << c.text;
}

TEST(Utf8, BytesOfNoCharacterAreReplaced) {
  EXPECT_EQ(well_formed("a\xff→\xe2\x86"), "a\uFFFD→\uFFFD\uFFFD");
  EXPECT_EQ(json_string("a\"\\\n<\x7f\xff→"), R"("a\"\\\\n\u003c\\x7f\\xff→")");
}

TEST(TextCursor, TakesParts) {
  TextCursor cursor("f32[2,-3]g@17 rest|more");
  EXPECT_EQ(cursor.until("["), "f32");
  EXPECT_FALSE(cursor.accept("("));
  EXPECT_TRUE(cursor.accept("["));
  EXPECT_EQ(cursor.number(), 2);
  EXPECT_EQ(cursor.part(']'), ",-3");
  EXPECT_EQ(cursor.part('@'), "g");
  EXPECT_EQ(cursor.number<uint32_t>(16), 0x17u);
  EXPECT_EQ(cursor.number(), std::nullopt);
  EXPECT_EQ(trimmed(cursor.part('|')), "rest");
  EXPECT_EQ(cursor.part('|'), "more");
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(cursor.part('|'), "");
}

TEST(TextCursor, WholeNumbers) {
  EXPECT_EQ(whole_number("-12"), -12);
  for (const char* text : {"", "1x", " 1", "99999999999999999999"})
    EXPECT_EQ(whole_number(text), std::nullopt);
  EXPECT_EQ(whole_number<uint8_t>("256"), std::nullopt);
}

class Files : public ::testing::Test {
 protected:
  Files() { fs::create_directories(folder_); }
  ~Files() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  const fs::path folder_ = fs::temp_directory_path() / ("metaprof_formats_" + std::to_string(getpid()));
};

TEST_F(Files, AreReadWhole) {
  const std::string file = write("a", std::string("b\0c", 3));
  EXPECT_EQ(read_file(file, 3, "a letter"), std::string("b\0c", 3));
  EXPECT_EQ(error_of([&] { read_file(file, 2, "a letter"); }), file + ": too large for a letter (3 bytes)");
  EXPECT_EQ(error_of([&] { read_file(file + "x", 2, "a letter"); }), file + "x: no such file");
  EXPECT_EQ(error_of([&] { read_file(folder_, 2, "a letter"); }),
            folder_.string() + ": is a folder, expected a letter");
}

TEST_F(Files, LinesOfGzip) {
  const std::string file = (folder_ / "lines.gz").string(), longest((1 << 24) - 1, 'x');
  const gzFile packed = gzopen(file.c_str(), "wb1");
  for (const std::string& line : {std::string("first"), std::string(), longest})
    gzputs(packed, (line + "\n").c_str());
  gzclose(packed);
  GzipLines lines(file, "a recording");
  std::string_view line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "first");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, "");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line, longest);
  EXPECT_EQ(lines.number(), 3);
  EXPECT_FALSE(lines.next(line));
  EXPECT_FALSE(lines.next(line));
}

// Messages name the place, what is expected, what is there, and who writes such files.
TEST(Member, SaysWhatIsWrong) {
  const JsonText text(R"({"a": {"b": [1, -2, "x", 1e3, true, {"c": null}]}, "n": null})", "f.json",
                      "ask them");
  const Member root = text.root(), list = root.at("a").at("b");
  std::vector<Member> elements;
  EXPECT_EQ(error_of([&] { root.at("c"); }), "f.json: 'c' is missing; ask them");
  EXPECT_EQ(error_of([&] { root.at("n"); }), "f.json: 'n' is missing; ask them");
  EXPECT_FALSE(root.find("n"));
  EXPECT_EQ(root.at("a").optional_text("c"), std::nullopt);
  EXPECT_EQ(error_of([&] { list.text(); }),
            "f.json: a.b: expected a text, got [1, -2, \"x\", 1e3, true, {\"c\": null}]");
  EXPECT_EQ(error_of([&] { list.at("x"); }).substr(0, 36), "f.json: a.b: expected an object, got");
  std::vector<std::string> errors;
  list.for_each([&](const Member& element) { errors.push_back(error_of([&] { element.count(); })); });
  EXPECT_EQ(errors, (std::vector<std::string>{
                        "no error", "f.json: a.b[1]: expected a whole number of at least 0, got -2",
                        "f.json: a.b[2]: expected a whole number of at least 0, got \"x\"",
                        "f.json: a.b[3]: expected a whole number of at least 0, got 1e3",
                        "f.json: a.b[4]: expected a whole number of at least 0, got true",
                        "f.json: a.b[5]: expected a whole number of at least 0, got {\"c\": null}"}));
  EXPECT_EQ(error_of([] { JsonText("{", "g.json", "ask them"); }),
            "g.json: JSON syntax error at byte 1 of 1: expected a string as key, got the end of the text; "
            "ask them");
}

}  // namespace
}  // namespace metaprof
