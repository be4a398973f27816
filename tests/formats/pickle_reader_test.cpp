#include "core/formats/pickle_reader.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace metaprof {
namespace {

using namespace std::string_literals;

std::string error_of(const std::string& bytes) {
  try {
    (void)Pickle(bytes, "x.pickle").root();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// pickle.dumps({"a": [1, -2, 300, 2**40, True, None], "b": (1.5, "é")}, protocol), as Python 3.11 writes it.
const std::string kProtocol0 =
    "(dp0\nVa\np1\n(lp2\nI1\naI-2\naI300\naL1099511627776L\naI01\naNasVb\np3\n(F1.5\nV\xe9\np4\ntp5\ns.";
const std::string kProtocol2 =
    "\x80\x02}q\x00(X\x01\x00\x00\x00"
    "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00\x00\x00\x00\x01\x88"
    "NeX\x01\x00\x00\x00"
    "bq\x03G?\xf8\x00\x00\x00\x00\x00\x00X\x02\x00\x00\x00\xc3\xa9q\x04\x86q\x05u."s;
const std::string kProtocol4 =
    "\x80\x04\x95\x34\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
    "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01\x8a\x06\x00\x00"
    "\x00\x00\x00\x01\x88Ne\x8c\x01"
    "b\x94G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94\x86\x94u."s;

TEST(PickleReader, ProtocolsHaveTheSameValues) {
  for (const std::string& bytes : {kProtocol0, kProtocol2, kProtocol4}) {
    const Pickle pickle(bytes, "x.pickle");
    const PickleValue list = pickle.root().at("a");
    ASSERT_EQ(list.size(), 6u);
    const int64_t numbers[] = {1, -2, 300, int64_t{1} << 40, 1};
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(list.element(i).integer(), numbers[i]) << i;
    EXPECT_TRUE(list.element(5).is_none());
    EXPECT_EQ(pickle.root().at("b").size(), 2u);
    EXPECT_FALSE(pickle.root().find("c"));
    EXPECT_EQ(pickle.root().values().size(), 2u);
  }
  const Pickle pickle(kProtocol4, "x.pickle");
  EXPECT_EQ(pickle.root().at("b").element(1).text(), "é");
}

TEST(PickleReader, ValuesAreSharedThroughTheMemo) {
  // x = [7]; pickle.dumps([x, x], 2); then one that holds itself
  const Pickle shared(
      "\x80\x02]q\x00(]q\x01K\x07"
      "ah\x01"
      "e."s,
      "x");
  EXPECT_EQ(shared.root().element(1).element(0).integer(), 7);
  const Pickle loop(
      "\x80\x02]q\x00h\x00"
      "a."s,
      "x");
  EXPECT_EQ(loop.root().element(0).element(0).size(), 1u);
}

// pickle.dumps(os.system), pickle.dumps(a set) and the like.
TEST(PickleReader, WhatWouldCallOrImportIsRefused) {
  for (const char* bytes :
       {"cos\nsystem\n(Vtrue\ntR.", "\x8c\x05posix\x8c\x06system\x93.", "(ios\nsystem\n.", "]R.", "]\x81."}) {
    const std::string error = error_of(bytes);
    EXPECT_NE(error.find("would import or call something"), std::string::npos) << error;
    EXPECT_TRUE(error.starts_with("x.pickle: byte ")) << error;
  }
  EXPECT_EQ(error_of("C\x01"
                     "a."),
            "x.pickle: byte 0 is no part of plain data (opcode 0x43); is it what "
            "torch.cuda.memory._dump_snapshot wrote?");
  EXPECT_EQ(error_of("\x80\x06."), "x.pickle: protocol 6 of pickle is not known");
}

TEST(PickleReader, BrokenOnesAreErrors) {
  EXPECT_EQ(error_of(""), "x.pickle: is no pickle, or was cut off: it ends too early at byte 0");
  for (size_t size = 0; size < kProtocol4.size(); ++size)
    EXPECT_NE(error_of(kProtocol4.substr(0, size)).find("was cut off"), std::string::npos) << size;
  for (size_t size = 0; size < kProtocol0.size(); ++size)
    EXPECT_NE(error_of(kProtocol0.substr(0, size)).find("was cut off"), std::string::npos) << size;
  for (const std::string& bytes :
       {"."s, "e."s, "(e."s,
        "K\x01"
        "a."s,
        "]K\x01s."s, "}(K\x01u."s, "h\x05."s, "(0."s, "I9999999999999999999\n."s, "Ix\n."s,
        "\x8a\x09"
        "123456789."s,
        "t."s})
    EXPECT_NE(error_of(bytes).find("is no pickle"), std::string::npos) << bytes << ": " << error_of(bytes);
}

TEST(PickleReader, DepthIsBounded) {
  EXPECT_EQ(error_of(std::string(1001, '(').append(".")), "x.pickle: more than 1000 open collections");
  // Lists within lists need no marks; a million of them are as good as one.
  const Pickle deep(std::string(1000000, ']') + std::string(999999, 'a') + ".", "x");
  EXPECT_EQ(deep.root().size(), 1u);
}

TEST(PickleReader, TheNumberOfValuesIsBounded) {
  EXPECT_NO_THROW(Pickle("(KKNNt.", "x", 4));
  try {
    (void)Pickle("(KKNNt.", "x", 3);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "x: has more than 3 values");
  }
}

TEST(PickleReader, ValuesOfAnotherKindAreErrors) {
  const Pickle pickle("\x80\x02]."s, "x");
  EXPECT_THROW((void)pickle.root().text(), Error);
  EXPECT_THROW((void)pickle.root().integer(), Error);
  EXPECT_THROW((void)pickle.root().find("a"), Error);
  EXPECT_THROW((void)pickle.root().values(), Error);
  EXPECT_THROW((void)pickle.root().element(0), Error);
}

// Bytes of a good one replaced one by one: an error or a value, never anything else.
TEST(PickleReader, AnyByteMayBeWrong) {
  for (size_t at = 0; at < kProtocol4.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string bytes = kProtocol4;
      bytes[at] = static_cast<char>(byte);
      (void)error_of(bytes);
    }
}

}  // namespace
}  // namespace metaprof
