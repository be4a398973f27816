#include "core/formats/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontend/archives.h"

namespace metaprof {
namespace {

std::string error_in(const std::string& text) {
  return error_of([&] { JsonDocument(text, "a.json"); });
}

TEST(Json, ReadsValuesOfEveryType) {
  const std::string text = R"( {"a": [1, -2.5e3, "x\ty", true, false, null, {}, []], "b": {"c": 7}} )";
  const JsonDocument document(text, "a.json");
  const Json list = document.root().at("a");
  EXPECT_EQ(list.count(), 8u);
  std::vector<Json::Type> types;
  list.for_each([&](Json element) { types.push_back(element.type()); });
  using Type = Json::Type;
  EXPECT_EQ(types, (std::vector{Type::number, Type::number, Type::string, Type::boolean, Type::boolean,
                                Type::null, Type::object, Type::list}));
  EXPECT_EQ(document.root().at("b").at("c").integer(), 7);
  EXPECT_FALSE(document.root().find("missing"));
}

TEST(Json, ReadsWhatLiesDeep) {
  const std::string text = R"({"a": [[[[[{"b": [1, 2, [3]]}]]]]]})";
  const JsonDocument document(text, "a.json");
  int64_t sum = 0;
  const auto add = [&](auto& self, Json value) -> void {
    if (value.is_list()) return value.for_each([&](Json element) { self(self, element); });
    if (value.is_object()) return value.for_each_member([&](std::string_view, Json v) { self(self, v); });
    sum += value.integer();
  };
  add(add, document.root());
  EXPECT_EQ(sum, 6);

  const std::string nested = R"({"a": {"b": {"c": {"d": {"e": {"f": "x"}}}}}})";
  const JsonDocument other(nested, "a.json");
  const Json f = other.root().at("a").at("b").at("c").at("d").at("e").at("f");
  EXPECT_EQ(f.string(), "x");
  EXPECT_EQ(f.path(), "a.b.c.d.e.f");
}

TEST(Json, StringsAreUnescaped) {
  const std::string text =
      R"(["\"\\\/\b\f\n\r\t", "\u0041\u00e9\u20ac\ud83d\ude00", "\ud800x", "größe", "a\u0000b"])";
  const JsonDocument document(text, "a.json");
  std::vector<std::string> strings;
  document.root().for_each([&](Json element) { strings.push_back(element.string()); });
  EXPECT_EQ(strings[0], "\"\\/\b\f\n\r\t");
  EXPECT_EQ(strings[1], "A\u00e9\u20ac\U0001F600") << "the last one is a surrogate pair";
  EXPECT_EQ(strings[2], "\ufffdx") << "half a pair";
  EXPECT_EQ(strings[3], "größe");
  EXPECT_EQ(strings[4], std::string("a\0b", 3));
}

TEST(Json, NumbersKeepAllTheirBits) {
  const std::string text = R"([9223372036854775807, -9223372036854775808, 9223372036854775808, 3.5, -1e+308,
                              "Infinity", "-Infinity", "NaN", 1e999])";
  const JsonDocument document(text, "a.json");
  std::vector<std::string> integers;
  std::vector<double> reals;
  document.root().for_each([&](Json element) {
    integers.push_back(error_of([&] { throw Error(std::to_string(element.integer())); }));
    const std::string message = error_of([&] { reals.push_back(element.real()); });
    if (message != "no error") expect_words(message, "[8]: 1e999 is out of the range");
  });
  EXPECT_EQ(integers[0], "9223372036854775807");
  EXPECT_EQ(integers[1], "-9223372036854775808");
  expect_words(integers[2], "a.json: [2]: 9223372036854775808 is out of the range of 64-bit integers");
  expect_words(integers[3], "expected an integer, got 3.5");
  expect_words(integers[5], "expected an integer, got a string");
  EXPECT_EQ(reals[3], 3.5);
  EXPECT_EQ(reals[4], -1e308);
  EXPECT_EQ(reals[5], INFINITY);
  EXPECT_EQ(reals[6], -INFINITY);
  EXPECT_TRUE(std::isnan(reals[7]));
  EXPECT_EQ(reals.size(), 8u);
}

TEST(Json, ErrorsNameTheFileAndThePath) {
  const std::string text = R"({"graph": {"nodes": [{"target": 7}, {"inputs": [[[[[{"x": 1}]]]]]}]}})";
  const JsonDocument document(text, "a.pt2: model.json");
  const Json nodes = document.root().at("graph").at("nodes");
  std::vector<std::string> errors;
  nodes.for_each([&](Json node) {
    errors.push_back(error_of([&] { node.at("target").string(); }));
    if (const Json inputs = node.find("inputs"))
      inputs.for_each([&](Json a) {
        a.for_each([&](Json b) {
          b.for_each([&](Json c) {
            c.for_each([&](Json d) {
              d.for_each([&](Json e) { errors.push_back(error_of([&] { e.at("x").boolean(); })); });
            });
          });
        });
      });
  });
  EXPECT_EQ(errors[0], "a.pt2: model.json: graph.nodes[0].target: expected a string, got a number");
  EXPECT_EQ(errors[1], "a.pt2: model.json: graph.nodes[1]: target is missing");
  EXPECT_EQ(errors[2],
            "a.pt2: model.json: graph.nodes[1].inputs[0][0][0][0][0].x: expected a boolean, got a number");
  EXPECT_EQ(error_of([&] { nodes.only_member(); }),
            "a.pt2: model.json: graph.nodes: expected an object, got a list");
  EXPECT_EQ(error_of([&] { document.root().for_each([](Json) {}); }),
            "a.pt2: model.json: expected a list, got an object");
}

TEST(Json, UnionsHaveOneMember) {
  const std::string text = R"([{"as_int": 3}, {}, {"a": 1, "b": 2}])";
  const JsonDocument document(text, "a.json");
  std::vector<std::string> errors;
  document.root().for_each([&](Json element) { errors.push_back(error_of([&] { element.only_member(); })); });
  EXPECT_EQ(errors[0], "no error");
  EXPECT_EQ(errors[1], "a.json: [1]: expected an object with one key, got 0");
  EXPECT_EQ(errors[2], "a.json: [2]: expected an object with one key, got 2");
}

TEST(Json, SyntaxErrorsSayWhereAndWhatWasExpected) {
  EXPECT_EQ(error_in(""), "a.json: the JSON text is empty");
  EXPECT_EQ(error_in("  \n"), "a.json: the JSON text is empty");
  EXPECT_EQ(error_in("[1; 2]"), "a.json: JSON syntax error at byte 2 of 6: expected ',' or ']', got ';'");
  EXPECT_EQ(error_in("{\"a\" 1}"), "a.json: JSON syntax error at byte 5 of 7: expected ':', got '1'");
  EXPECT_EQ(error_in("{\"a\": 1"),
            "a.json: JSON syntax error at byte 7 of 7: expected ',' or '}', got the end of the text");
  for (const char* text :
       {"[1,]", "{\"a\":1,}", "{a: 1}",    "[1 2]",         "tru",   "nulll",    "+1", "01", "1.", ".5", "1e",
        "-",    "\"abc",      "[\"\\x\"]", "[\"\\u12g4\"]", "[\"\\", "[\"\\u12", "[",  "{",  "]",  "[}", "{]",
        "[]]",  "1 2",        "{\"a\"",    "[\"a\tb\"]",    "\x01"})
    expect_words(error_in(text), "JSON syntax error");
}

TEST(Json, TextMustBeUtf8) {
  for (const char* text :
       {"\"\xff\"", "\"\x80\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xe0\x80\x80\"", "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"", "\"abcdefgh\xe2\x82"})
    expect_words(error_in(text), "not UTF-8");
  EXPECT_EQ(error_in("\"\xf0\x9f\x98\x80 \xe2\x82\xac \xc3\xa9\""), "no error");
}

TEST(Json, NestingIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_in(nested(JsonDocument::kMaxDepth)), "no error");
  expect_words(error_in(nested(JsonDocument::kMaxDepth + 1)), "nested too deep");
  expect_words(error_in(std::string(1'000'000, '[')), "nested too deep");
}

}  // namespace
}  // namespace metaprof
