#include <cmath>
#include <filesystem>
#include <fstream>

#include "estimate/results/device/measurement.h"
#include "tests/backends_cuda/on_device.h"

namespace metaprof {
namespace {

using nlohmann::json;

TEST(Measure, OnAnEmulatedDeviceGivesFactsAndNoTimes) {
  METAPROF_NEEDS_CUDA();
  const json file = json_on_device("measure --quick --out -");
  ASSERT_TRUE(file.is_object());
  EXPECT_EQ(file["like"], "h200");
  EXPECT_EQ(file["title"], "NVIDIA H200");
  EXPECT_EQ(file["memory"], 150121480192);
  EXPECT_EQ(file["sm"], 90);
  const json& measured = file["measured"];
  EXPECT_EQ(measured["quick"], true);
  EXPECT_EQ(measured["granularities"]["mapped_least"], 2 << 20);
  for (const char* rate : {"bandwidth", "flops_f16", "outside"})
    EXPECT_FALSE(measured.contains(rate)) << rate;
  for (const char* rows : {"copies", "elementwise", "products", "convolutions"}) {
    EXPECT_GE(measured[rows].size(), 5u) << rows;
    for (const json& row : measured[rows]) EXPECT_TRUE(row["seconds"].is_null()) << row;
  }
  EXPECT_EQ(measured["date"].get<std::string>().size(), std::string("2026-01-31T12:00:00Z").size());
}

TEST(Measure, FullHasMoreRowsThanQuick) {
  METAPROF_NEEDS_CUDA();
  const json quick = json_on_device("measure --quick --out -"), full = json_on_device("measure --out -");
  for (const char* rows : {"copies", "elementwise", "products", "convolutions"})
    EXPECT_GT(full["measured"][rows].size(), quick["measured"][rows].size()) << rows;
}

TEST(Measure, WritesAFileThatCommandsTake) {
  METAPROF_NEEDS_CUDA();
  const std::string file = testing::TempDir() + fmt::format("card_{}.json", getpid());
  const Outcome outcome = run_on_device("measure --quick --out " + file);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("emulated: no times"), std::string::npos) << outcome.out;
  const Outcome described = run_program("profile gpt2 --device " + file + " --json -");
  const Outcome known = run_program("profile gpt2 --device h200 --json -");
  EXPECT_EQ(described.exit_code, 0) << described.err;
  EXPECT_EQ(described.out, known.out);  // nothing was measured that could differ
  std::filesystem::remove(file);
}

TEST(Measure, AFileThatCannotBeWrittenIsSaidBefore) {
  METAPROF_NEEDS_CUDA();
  const Outcome outcome = run_on_device("measure --out /nowhere/card.json");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("/nowhere/card.json"), std::string::npos) << outcome.err;
}

// ---- what estimates take from samples

Sampled sampled(double median) { return {.median = median, .least = median, .most = median, .samples = 1}; }

TEST(RatesOfAMeasurement, AreThoseOfLargeWork) {
  DeviceMeasurement m;
  m.hardware.l2_cache = {50 << 20};
  m.outside = {{"context", {400 << 20}}, {"cuBLAS: handle", {100 << 20}}};
  m.elementwise = {{.bytes_per_load = 16, .bytes = {1 << 20}, .seconds = sampled(1e-9)},  // from the cache
                   {.bytes_per_load = 4, .bytes = {1'000'000'000}, .seconds = sampled(2e-3)},
                   {.bytes_per_load = 16, .bytes = {1'000'000'000}, .seconds = sampled(1e-3)}};
  m.products = {{"bf16", 1000, 1000, 1000, sampled(1e-3)},
                {"bf16", 1000, 1000, 2000, sampled(1e-3)},
                {"f32", 1000, 1000, 1000, std::nullopt}};
  const MeasuredRates rates = rates_of(m);
  EXPECT_EQ(rates.outside.count, 500 << 20);
  EXPECT_DOUBLE_EQ(rates.bandwidth, 3e12);
  EXPECT_DOUBLE_EQ(rates.flops_f16, 4e12);
  EXPECT_EQ(rates.flops_f32, 0);
}

// A file with rates, as a real device gives it.
class MeasuredFile : public testing::Test {
 protected:
  MeasuredFile() : file_(testing::TempDir() + fmt::format("measured_{}.json", getpid())) {}
  ~MeasuredFile() override { std::filesystem::remove(file_); }
  json profile(const json& measured) const {
    std::ofstream(file_) << json{{"like", "h200"}, {"measured", measured}};
    return json::parse(run_program("profile gpt2 --json - --device " + file_).out);
  }
  std::string file_;
};

TEST_F(MeasuredFile, SaysWhatIsOutsideTheAllocator) {
  const json report = profile({{"outside", 700 << 20}});
  EXPECT_EQ(report["verdict"]["outside_least_bytes"], 700 << 20) << report["verdict"];
  EXPECT_NE(report["verdict"].dump().find("measured on the device"), std::string::npos) << report["verdict"];
}

TEST_F(MeasuredFile, DecidesExpectedTimes) {
  const json usual = profile(json::object()), twice = profile({{"flops_f32", 2 * 0.75 * 67e12}});
  EXPECT_LT(twice["expected_seconds"]["forward"].get<double>(),
            usual["expected_seconds"]["forward"].get<double>());
  EXPECT_EQ(twice["roofline_seconds"], usual["roofline_seconds"]);  // a bound is of the data sheet
}

TEST_F(MeasuredFile, WithWhatIsNoMeasurementIsRefused) {
  std::ofstream(file_) << R"({"like": "h200", "measured": {"speed": 1}})";
  const Outcome outcome = run_program("profile gpt2 --device " + file_);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("measured.speed: unknown key; `metaprof measure` writes what may stand here"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace metaprof
