#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/backends_cuda/on_device.h"

namespace metaprof {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Steps that were recorded with the framework, of programs of many kinds.
std::vector<std::string> recorded_steps() {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator("tests/data/captured"))
    if (entry.path().extension() == ".mp") files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

int64_t peak_of(const json& replay, const char* which, const char* number = "reserved_bytes") {
  return replay["peak"][which][number]["peak"].get<int64_t>();
}

// What cudaMemGetInfo says must be what the allocator believes to have.
void expect_device_agrees(const json& replay, const std::string& what) {
  const int64_t outside = replay["device"]["used_before_bytes"].get<int64_t>();
  EXPECT_EQ(replay["device"]["used_outside_at_end_bytes"].get<int64_t>(), outside) << what;
  for (const json& part : replay["parts"])
    EXPECT_EQ(part["device_used_bytes"].get<int64_t>() - outside,
              part["real"]["reserved_bytes"]["peak"].get<int64_t>())
        << what << ", " << part["part"];
}

class ReplayOfSegments : public testing::TestWithParam<const char*> {};

TEST_P(ReplayOfSegments, OfRecordedStepsIsAsEstimated) {
  METAPROF_NEEDS_CUDA();
  const bool expandable = std::string(GetParam()).find("expandable") != std::string::npos;
  const std::vector<std::string> steps = recorded_steps();
  ASSERT_GE(steps.size(), 30u);
  for (const std::string& step : steps) {
    const json replay = json_on_device("replay " + step + " --json - " + GetParam());
    ASSERT_TRUE(replay.is_object()) << step;
    EXPECT_EQ(replay["differences"], json::array()) << step;
    EXPECT_EQ(replay["differences_at_addresses"], json::array()) << step;
    EXPECT_GT(peak_of(replay, "real"), 0) << step;
    EXPECT_EQ(peak_of(replay, "real"), peak_of(replay, "estimated")) << step;
    EXPECT_EQ(replay["segments"]["pages_mapped"].get<int64_t>() > 0, expandable) << step;
    EXPECT_EQ(replay["segments"]["allocated"].get<int64_t>() > 0, !expandable) << step;
    expect_device_agrees(replay, step);
  }
}

TEST_P(ReplayOfSegments, RunsOutOfMemoryWhereEstimated) {
  METAPROF_NEEDS_CUDA();
  int ran_out = 0;
  for (const std::string& step : recorded_steps()) {
    const json whole = json_on_device("replay " + step + " --json - " + GetParam());
    const int64_t outside = whole["device"]["used_before_bytes"].get<int64_t>();
    const int64_t memory = outside + peak_of(whole, "real") / 10 * 7;
    const json replay =
        json_on_device(fmt::format("replay {} --json - --memory {}B {}", step, memory, GetParam()));
    ASSERT_TRUE(replay.is_object()) << step;
    EXPECT_EQ(replay["differences"], json::array()) << step;
    EXPECT_EQ(replay["out_of_memory"]["estimated"].is_null(), replay["out_of_memory"]["real"].is_null())
        << step;
    EXPECT_EQ(replay["out_of_memory"]["estimated"], replay["out_of_memory"]["real"]) << step;
    if (replay["out_of_memory"]["real"].is_null()) continue;
    ++ran_out;
    EXPECT_GT(replay["segments"]["refused"].get<int64_t>(), 0) << step;
  }
  EXPECT_GE(ran_out, 20);
}

INSTANTIATE_TEST_SUITE_P(Both, ReplayOfSegments, testing::Values("", "--alloc-conf expandable_segments:True"),
                         [](const auto& info) { return info.index == 0 ? "Ordinary" : "Expandable"; });
TEST(Replay, OfTheSameModelInBothKindsOfSegmentsTakesDifferentMemory) {
  METAPROF_NEEDS_CUDA();
  const json ordinary = json_on_device("replay tests/data/captured/encoder.mp --json -");
  const json expandable =
      json_on_device("replay tests/data/captured/encoder.mp --json - --alloc-conf expandable_segments:True");
  EXPECT_NE(peak_of(ordinary, "real"), peak_of(expandable, "real"));
  EXPECT_EQ(peak_of(ordinary, "real", "requested_bytes"), peak_of(expandable, "real", "requested_bytes"));
}

// A megabyte that is taken before opens a piece of addresses for small segments, as other users of a real device do.
TEST(Replay, SaysWhatFollowsFromTheDriversAddresses) {
  METAPROF_NEEDS_CUDA();
  const std::string words = fmt::format("replay tests/data/captured/run/pipeline_0.mp --memory {}B",
                                        int64_t{150121480192} - (1 << 20));
  const json replay = json_on_device(words + " --json -");
  EXPECT_GT(replay["differences"].size(), 0u);
  EXPECT_EQ(replay["differences_at_addresses"], json::array());
  EXPECT_NE(run_on_device(words).out.find("by what the driver decides: told its addresses"),
            std::string::npos);
}

// Work on other streams that is not over keeps blocks, which an estimate has free at once.
TEST(Replay, BlocksOfOtherStreamsAreFreeWhenTheDeviceSaysSo) {
  METAPROF_NEEDS_CUDA();
  const std::string words = "replay tests/data/captured/run/zero3.mp";
  const Outcome late = run_on_device(words + " --json -", "METAPROF_EMULATOR_CLOCK=late ");
  EXPECT_EQ(late.exit_code, 1) << late.err;
  const json replay = json::parse(late.out), at_once = json_on_device(words + " --json -");
  EXPECT_EQ(at_once["waited"], 0);
  EXPECT_GT(replay["waited"].get<int64_t>(), 0);
  EXPECT_GT(peak_of(replay, "real"), peak_of(replay, "estimated"));
  EXPECT_GT(replay["differences_at_addresses"].size(), 0u);
  EXPECT_EQ(peak_of(replay, "real", "blocks"), peak_of(at_once, "real", "blocks"));
}

void expect_schema(const json& report, const std::string& schema) {
  const std::string file = testing::TempDir() + fmt::format("replay_{}.json", getpid());
  std::ofstream(file) << report;
  EXPECT_EQ(std::system(
                (METAPROF_PYTHON " tests/validate_json.py reports/schema/" + schema + ".schema.json " + file)
                    .c_str()),
            0);
  fs::remove(file);
}

TEST(Replay, ReportsFollowTheirSchemas) {
  METAPROF_NEEDS_CUDA();
  expect_schema(json_on_device("replay tests/data/captured/encoder.mp --json -"), "replay");
  expect_schema(json_on_device("replay gpt2 --memory 1GiB --json -"), "replay");
  expect_schema(json_on_device("measure --quick --out -"), "device");
}

TEST(Replay, ExecutesEveryCallThatCosts) {
  METAPROF_NEEDS_CUDA();
  const json replay = json_on_device("replay gpt2 --batch 1 --sequence 64 --steps 1 --json -");
  const json profile =
      json::parse(run_program("profile gpt2 --batch 1 --sequence 64 --steps 1 --json -").out);
  int64_t flops = 0, products = 0;
  for (const json& kind : replay["last_step_by_kind"]) {
    flops += kind["flops"].get<int64_t>();
    if (kind["executed_as"] == "cuBLAS product") products = kind["flops"].get<int64_t>();
  }
  int64_t all = 0;
  for (const char* part : {"forward", "backward", "recompute", "optimizer"})
    all += profile["flops_all"][part].get<int64_t>();
  EXPECT_EQ(flops, all);
  EXPECT_GT(products, flops / 2);  // linear layers are most of the model
}

TEST(Replay, ConvolutionsAreThoseOfCudnn) {
  METAPROF_NEEDS_CUDA();
  const json replay = json_on_device("replay resnet18 --steps 1 --json -");
  int64_t convolutions = 0;
  for (const json& op : replay["last_step_by_operator"]) {
    if (op["operator"].get<std::string>().starts_with("aten.convolution")) {
      EXPECT_EQ(op["executed_as"], "cuDNN convolution");
      EXPECT_EQ(op["real"], true);
      convolutions += op["calls"].get<int64_t>();
    }
  }
  EXPECT_EQ(convolutions, 40);  // twenty, forward and backward
  EXPECT_GT(replay["device"]["cudnn"].get<int64_t>(), 90000);
}

TEST(Replay, TextHasBothSidesAndSaysThatNothingWasTimed) {
  METAPROF_NEEDS_CUDA();
  const Outcome outcome = run_on_device("replay tests/data/captured/encoder.mp");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words :
       {"NVIDIA H200 (device 0)", "reserved peak", "out of memory: estimated nowhere, real nowhere",
        "every figure of the allocator are as estimated", "(stand-in)",
        "No time passed on this device: an emulated one computes nothing."})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

// ---- messages

void expect_error(const std::string& words, const std::string& environment, const std::string& message) {
  const Outcome outcome = run_program(words, environment);
  EXPECT_EQ(outcome.exit_code, 2) << words;
  EXPECT_EQ(outcome.out, "") << words;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
}

TEST(Replay, NeedsADriver) {
  METAPROF_NEEDS_CUDA();
  if (run_program("replay gpt2", "LD_LIBRARY_PATH= ").exit_code != 2)
    GTEST_SKIP() << "this machine has a GPU";
  for (const char* command : {"replay gpt2", "measure"})
    expect_error(command, "LD_LIBRARY_PATH= ", "this command needs an NVIDIA GPU");
}

TEST(Replay, NeedsADevice) {
  METAPROF_NEEDS_CUDA();
  const std::string none = std::string(kEmulated) + "CUDA_VISIBLE_DEVICES=-1 ";
  for (const char* command : {"replay gpt2", "measure"})
    expect_error(command, none, "this command needs an NVIDIA GPU");
  for (const char* command : {"replay gpt2 --device 7", "measure --device 7"})
    expect_error(command, kEmulated, "--device 7: there are devices 0 to 0");
  for (const char* device : {"h100", "card.json", "-1", "0x1", "\"\""})
    expect_error(std::string("replay gpt2 --device ") + device, kEmulated, "expected the number of a GPU");
}

TEST(Replay, RefusesWhatTheDeviceSays) {
  METAPROF_NEEDS_CUDA();
  for (const char* option : {"--context 1GiB", "--margin 5%"})
    expect_error(std::string("replay gpt2 ") + option, kEmulated, "the device says what is in use on it");
  expect_error("replay gpt2 --memory 500GiB", kEmulated,
               "--memory 500GiB: the device has 150121480192 bytes");
  expect_error("replay gpt2 --memory 10MiB", kEmulated, "--memory 10MiB: of the device's memory");
}

// The driver is there, and files that are no cuBLAS, in place of any that this machine may have.
TEST(Replay, NeedsCublas) {
  METAPROF_NEEDS_CUDA();
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("driver_alone_{}", getpid());
  fs::create_directories(folder);
  fs::create_symlink(fs::path(METAPROF_EMULATOR_FOLDER) / "libcuda.so.1", folder / "libcuda.so.1");
  for (const char* name : {"libcublas.so.12", "libcublas.so.13"}) std::ofstream(folder / name) << "empty";
  expect_error("replay gpt2", "LD_LIBRARY_PATH=" + folder.string() + " ",
               "LD_LIBRARY_PATH must name the folder with cuBLAS");
  fs::remove_all(folder);
}

TEST(Replay, BuiltWithoutCudaSaysSo) {
#ifdef METAPROF_CUDA
  GTEST_SKIP() << "built with CUDA";
#else
  for (const char* command : {"replay gpt2", "measure"})
    expect_error(command, "", "this metaprof was built without CUDA: run tools/setup cuda");
#endif
}

}  // namespace
}  // namespace metaprof
