// metaprof explain: messages of out-of-memory errors as people have pasted them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

std::string file_with(const std::string& text) {
  const fs::path file = fs::path(testing::TempDir()) / fmt::format("explain-{}.log", getpid());
  std::ofstream(file) << text;
  return file;
}

nlohmann::json explained(const std::string& text) {
  const Outcome outcome = run_program("explain --json - " + file_with(text));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

constexpr double kGiB = 1 << 30, kMiB = 1 << 20;

// What each wording says, and what follows from it.
struct Message {
  const char *name, *text;
  double asked, free, allocated, cached;
  const char* cause;
};

const Message kMessages[] = {
    {"1.4: in brackets, cached",
     "RuntimeError: CUDA out of memory. Tried to allocate 100.00 MiB (GPU 0; 10.76 GiB total capacity; 9.78 "
     "GiB "
     "already allocated; 4.94 MiB free; 9.79 GiB cached)",
     100 * kMiB, 4.94 * kMiB, 9.78 * kGiB, 0.01 * kGiB, "full"},
    {"1.5 to 2.0: reserved in total",
     "OutOfMemoryError: CUDA out of memory. Tried to allocate 294.00 MiB (GPU 0; 22.19 GiB total capacity; "
     "18.35 GiB "
     "already allocated; 46.50 MiB free; 21.35 GiB reserved in total by PyTorch) If reserved memory is >> "
     "allocated "
     "memory try setting max_split_size_mb to avoid fragmentation.",
     294 * kMiB, 46.5 * kMiB, 18.35 * kGiB, 3 * kGiB, "pieces"},
    {"others hold what this process has not",
     "CUDA out of memory. Tried to allocate 96.00 MiB (GPU 0; 39.99 GiB total capacity; 4.06 GiB already "
     "allocated; "
     "36.00 MiB free; 4.09 GiB reserved in total by PyTorch)",
     96 * kMiB, 36 * kMiB, 4.06 * kGiB, 0.03 * kGiB, "other-processes"},
    {"2.1: capacty",
     "Tried to allocate 8.00 GiB. GPU 0 has a total capacty of 23.69 GiB of which 5.25 GiB is free. Process "
     "2006998 "
     "has 256.00 MiB memory in use. Including non-PyTorch memory, this process has 18.17 GiB memory in use. "
     "Of the "
     "allocated memory 17.88 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
     "unallocated. If "
     "reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
     8 * kGiB, 5.25 * kGiB, 17.88 * kGiB, 0, "full"},
    {"2.2 and later, wrapped into lines and quoted",
     "# CUDA out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total capacity of 94.96 GiB of\n# "
     "which 59.69 MiB is "
     "free. Process 502587 has 1.78 GiB\n# memory in use. Process 745081 has 86.44 GiB memory in use. "
     "Including\n"
     "# non-PyTorch memory, this process has 6.62 GiB memory in use. Of the allocated memory\n# 5.97 GiB is "
     "allocated by PyTorch, and 16.33 MiB is reserved by PyTorch but unallocated.",
     130 * kMiB, 59.69 * kMiB, 5.97 * kGiB, 16.33 * kMiB, "other-processes"},
    {"a fraction is allowed",
     "Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB of which 60.00 GiB is free. 20.00 "
     "GiB "
     "allowed; Of the allocated memory 18.50 GiB is allocated by PyTorch, and 0.50 GiB is reserved by "
     "PyTorch but "
     "unallocated.",
     2 * kGiB, 60 * kGiB, 18.5 * kGiB, 0.5 * kGiB, "limit"},
    {"one request that is larger than the device",
     "Tried to allocate 130206.04 GiB. GPU 0 has a total capacity of 23.56 GiB of which 16.57 GiB is free. "
     "Including "
     "non-PyTorch memory, this process has 6.97 GiB memory in use. Of the allocated memory 5.45 GiB is "
     "allocated by "
     "PyTorch, and 1.17 GiB is reserved by PyTorch but unallocated.",
     130206.04 * kGiB, 16.57 * kGiB, 5.45 * kGiB, 1.17 * kGiB, "too-large"},
};

class ExplainTest : public testing::TestWithParam<Message> {};

TEST_P(ExplainTest, IsRead) {
  const Message& expected = GetParam();
  const nlohmann::json json = explained(expected.text);
  const auto near = [&](const char* member, double value, double off) {
    EXPECT_NEAR(json[member].get<double>(), value, off) << member;
  };
  near("asked", expected.asked, 1);
  near("free", expected.free, 1);
  near("allocated", expected.allocated, 1);
  near("reserved_but_unallocated", expected.cached, 2);  // a difference of rounded numbers
  EXPECT_EQ(json["cause"], expected.cause);
}

INSTANTIATE_TEST_SUITE_P(Wordings, ExplainTest, testing::ValuesIn(kMessages), [](const auto& info) {
  std::string name;
  for (const char c : std::string_view(info.param.name)) name += std::isalnum(c) != 0 ? c : '_';
  return name;
});

// In a container the driver numbers processes otherwise: this one is among those that are listed.
TEST(Explain, InAContainerThisProcessIsTheLeastThatHasWhatIsReserved) {
  const nlohmann::json json = explained(
      "Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 21.67 GiB of which 255.75 MiB is free. "
      "Process "
      "2109 has 344.00 MiB memory in use. Process 1448259 has 21.07 GiB memory in use. Of the allocated "
      "memory 20.08 "
      "GiB is allocated by PyTorch, with 328.00 MiB allocated in private pools (e.g., CUDA Graphs), and 2.49 "
      "MiB is "
      "reserved by PyTorch but unallocated.");
  EXPECT_NEAR(json["this_process"].get<double>(), 21.07 * kGiB, 1);
  ASSERT_EQ(json["other_processes"].size(), 1u);
  EXPECT_EQ(json["other_processes"][0]["process"], 2109);
  EXPECT_EQ(json["in_private_pools"], 328 << 20);
  EXPECT_EQ(json["cause"], "other-processes");
}

TEST(Explain, TheLastMessageOfALogCounts) {
  const std::string log = std::string(kMessages[0].text) + "\nretrying\n" + kMessages[5].text + "\n";
  const nlohmann::json json = explained(log);
  EXPECT_EQ(json["messages"], 2);
  EXPECT_EQ(json["gpu"], 1);
  const std::string text = run_program("explain " + file_with(log)).out;
  EXPECT_TRUE(
      text.starts_with("Memory ran out on GPU 1 (PyTorch 2.1 or newer). This is the last of 2 messages\n"))
      << text;
}

TEST(Explain, TheTextSaysWhyAndWhatHelps) {
  EXPECT_EQ(
      run_program("explain " + file_with(kMessages[1].text)).out,
      "Memory ran out on GPU 0 (PyTorch 2.0 or older)\n"
      "\n"
      "  memory                       amount\n"
      "  -----------------------------------\n"
      "  asked for                 294.0 MiB\n"
      "  free on the GPU            46.5 MiB\n"
      "  held by tensors            18.3 GiB\n"
      "  reserved but unallocated    3.0 GiB\n"
      "  other programs                  0 B\n"
      "  the GPU has                22.2 GiB\n"
      "\n"
      "Why: There was room: 46.5 MiB free and 3.0 GiB reserved but unallocated. But no piece of it was large "
      "enough, so the memory is fragmented.\n"
      "\n"
      "What helps, the first thing first:\n"
      "  1. Set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128, or use PyTorch 2.1 or newer and "
      "expandable_segments:True\n"
      "  2. See who holds the memory: metaprof run -- python train.py\n"
      "  3. Use a smaller batch, and accumulate gradients: metaprof fit MODEL --device NAME finds the "
      "largest "
      "that fits\n"
      "  4. Recompute activations in the backward (torch.utils.checkpoint): metaprof advise MODEL shows "
      "what each such change saves\n");
}

TEST(Explain, TheJsonFollowsItsSchema) {
  const std::string json = file_with(explained(kMessages[4].text).dump());
  const int status = std::system(
      (METAPROF_PYTHON " tests/validate_json.py reports/schema/explain.schema.json " + json).c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "python3-jsonschema is not installed";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Explain, OtherTextsAreRefusedInOneLine) {
  const auto refused = [](const std::string& text) {
    const Outcome outcome = run_program("explain " + file_with(text));
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_NE(refused("all is well\n")
                .find("no message of an out-of-memory in it: expected \"Tried to allocate … GiB\""),
            std::string::npos);
  EXPECT_NE(refused("Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which")
                .find("is no whole message of PyTorch"),
            std::string::npos);
  EXPECT_NE(refused("Tried to allocate 2.00 GiB (GPU 0; 1e99999999 GiB total capacity; x")
                .find("is no whole message"),
            std::string::npos);
  EXPECT_NE(refused("Tried to allocate 20.00 MiB (GPU 0; 99999999999999 GiB total capacity; 1.00 GiB already "
                    "allocated; 1 "
                    "GiB free; 1 GiB reserved")
                .find("no device has so much"),
            std::string::npos);
  EXPECT_NE(refused(std::string(1 << 20, '(') + "Tried to allocate " + std::string(1 << 20, '9'))
                .find("is no whole"),
            std::string::npos);
}

}  // namespace
}  // namespace metaprof
