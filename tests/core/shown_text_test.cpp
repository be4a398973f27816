#include "core/shown_text.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/utf8.h"

namespace metaprof {
namespace {

TEST(ShownText, IsPlain) {
  EXPECT_EQ(shown("model.fc"), "model.fc");
  EXPECT_EQ(shown("größe 𝄞"), "größe 𝄞");
  EXPECT_EQ(shown("a\nb\tc\rd\x1b[31m\x7f"), "a\\nb\\tc\\x0dd\\x1b[31m\\x7f");
  EXPECT_EQ(shown(std::string(1, '\0')), "\\x00");
  EXPECT_EQ(shown("\xff\xc3"), "\\xff\\xc3") << "not UTF-8";
  EXPECT_EQ(shown("\u0085|\u009b[2J"), "\\u0085|\\u009b[2J") << "C1: the end of a line, CSI";
  EXPECT_EQ(shown("\u061c\u200e\u200f\u2028\u202e\u2066\u2069"),
            "\\u061c\\u200e\\u200f\\u2028\\u202e\\u2066\\u2069");
  EXPECT_EQ(shown("\ufffe\uffff\ufffd"), "\\ufffe\\uffff\ufffd") << "no characters";
}

TEST(ShownText, IsCutInTheMiddle) {
  EXPECT_EQ(shown("0123456789", 10), "0123456789");
  EXPECT_EQ(shown("0123456789", 7), "012…789");
  EXPECT_EQ(shown("ääääääääää", 4), "ä…ää");
  EXPECT_EQ(width_of(shown(std::string(100000, 'x'), 36)), 36u);
  EXPECT_EQ(width_of(shown(std::string(100000, '\x1b'), 36)), 36u);
}

TEST(ShownText, AMessageKeepsWhatItSaysOfALongWord) {
  const std::string word(200000, 'w');
  const std::string message = shown_message("a.pt2: there is no option '" + word + "' here");
  EXPECT_TRUE(message.starts_with("a.pt2: there is no option 'www")) << message;
  EXPECT_TRUE(message.ends_with("www' here")) << message;
  EXPECT_LE(width_of(message), 260u);
  std::string words;
  for (int i = 0; i < 1000; ++i) words += "word\n ";
  EXPECT_EQ(width_of(shown_message(words)), kMostCharactersOfMessage);
  EXPECT_EQ(shown_message("two  blanks "), "two  blanks ");
  EXPECT_EQ(std::string(Error(words).what()), shown_message(words));
  EXPECT_EQ(shown_message(shown_message(words)), shown_message(words));
}

TEST(ShownText, ReportsKeepTheirLinesAndColours) {
  EXPECT_EQ(shown_lines("\x1b[1mhead\x1b[0m\nrow → 1\n"), "\x1b[1mhead\x1b[0m\nrow → 1\n");
  EXPECT_EQ(shown_lines("a\x1b[2J\x1b[1\u009b1m\u202e\xff\t\n"),
            "a\\x1b[2J\\x1b[1\\u009b1m\\u202e\\xff\\t\n");
}

TEST(ShownText, StringsOfJsonStayWhatTheyAre) {
  EXPECT_EQ(shown_json("{\n \"größe\": 1}"), "{\n \"größe\": 1}");
  EXPECT_EQ(shown_json("\"\x7f\u009b\u202e\xff\""), "\"\\u007f\\u009b\\u202e\\ufffd\"");
}

TEST(ShownText, NumbersOfCharacters) {
  EXPECT_EQ(utf8_character("a"), 0x61u);
  EXPECT_EQ(utf8_character("ä"), 0xe4u);
  EXPECT_EQ(utf8_character("→"), 0x2192u);
  EXPECT_EQ(utf8_character("𝄞"), 0x1d11eu);
}

}  // namespace
}  // namespace metaprof
