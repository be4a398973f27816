#pragma once
// tests/data/traces/two_layers.trace as a report, for tests of its forms.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "meta/allocator/exact_allocator.h"
#include "meta/trace/text.h"
#include "reports/page/html_page.h"
#include "tests/read_file.h"

namespace metaprof {

using Json = nlohmann::json;

inline const Rates kRates{.bytes_per_second = 1e6, .flops_f64 = 1e6, .flops_f32 = 1e6, .flops_f16 = 1e6};

class TwoLayersFiles : public testing::Test {
 protected:
  TwoLayersFiles() {
    report_.model = "two_layers";
    report_.device = "toy";
    report_.device_title = "Toy 4000";
    report_.device_memory = {4000};
    report_.options = {{"precision", std::string("fp32")}, {"steps", int64_t{2}}, {"fused", false}};
    report_.module_types = {{"", "demo.TwoLayers"}, {"fc1", "torch.nn.modules.linear.Linear"}};
    ExactAllocator allocator;
    report_.memory = profile_memory(trace_, kFirstGpu, allocator);
    report_.counts = count(trace_, kRates);
    report_.nodes = profile_nodes(trace_, kFirstGpu, Granularity::module, kRates);
    at_peak_ = peak_moment(trace_, kFirstGpu).largest;
  }

  std::string page(const Trace& trace, const ProfileReport& report,
                   const ProfileDiff* compared = nullptr) const {
    return html_page({.report = report,
                      .schedule = schedule(trace, kFirstGpu, kRates),
                      .stays = storage_stays(trace, kFirstGpu),
                      .lines = lines_,
                      .compared = compared});
  }
  std::string page() const { return page(trace_, report_); }

  static void expect_golden(const std::string& name, const std::string& text) {
    const std::string file = "tests/data/reports/two_layers." + name;
    if (std::getenv("METAPROF_WRITE_GOLDEN")) std::ofstream(file) << text;
    EXPECT_EQ(text, read_file(file)) << name;
  }

  const Trace trace_ = parse_trace(read_file("tests/data/traces/two_layers.trace"));
  ProfileReport report_;
  std::vector<LargeStorage> at_peak_;
  const SourceLines lines_{.by_call = {{{"fc1", "aten::mm"}, "model.py:7"}},
                           .by_module = {{"fc2", "model.py:9"}}};
};

}  // namespace metaprof
