#include <nlohmann/json.hpp>

#include "reports/device/measurement_report.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json sampled_json(const std::optional<Sampled>& seconds) {
  if (!seconds) return nullptr;
  return {{"median", seconds->median},
          {"least", seconds->least},
          {"most", seconds->most},
          {"samples", seconds->samples}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json growth_json(const DeviceMeasurement& m) {
  Json rows = Json::array();
  for (const MemoryGrowth& growth : m.outside)
    rows.push_back({{"what", growth.what}, {"bytes", growth.bytes.count}});
  return rows;
}

Json clocks_json(const ClocksAndPower& clocks) {
  return {
      {"sm_mhz", or_null(clocks.sm_mhz)},         {"sm_mhz_most", or_null(clocks.sm_mhz_most)},
      {"memory_mhz", or_null(clocks.memory_mhz)}, {"memory_mhz_most", or_null(clocks.memory_mhz_most)},
      {"celsius", or_null(clocks.celsius)},       {"power_limit_watts", or_null(clocks.power_limit_watts)}};
}

Json copies_json(const DeviceMeasurement& m) {
  Json rows = Json::array();
  for (const MeasuredCopy& copy : m.copies)
    rows.push_back({{"direction", copy.direction},
                    {"bytes", copy.bytes.count},
                    {"seconds", sampled_json(copy.seconds)}});
  return rows;
}

Json elementwise_json(const DeviceMeasurement& m) {
  Json rows = Json::array();
  for (const MeasuredElementwise& row : m.elementwise)
    rows.push_back({{"bytes_per_load", row.bytes_per_load},
                    {"bytes_per_tensor", row.bytes.count},
                    {"seconds", sampled_json(row.seconds)}});
  return rows;
}

Json products_json(const DeviceMeasurement& m) {
  Json rows = Json::array();
  for (const MeasuredProduct& p : m.products)
    rows.push_back({{"type", p.type},
                    {"rows", p.rows},
                    {"columns", p.columns},
                    {"inner", p.inner},
                    {"seconds", sampled_json(p.seconds)}});
  return rows;
}

Json convolutions_json(const DeviceMeasurement& m) {
  Json rows = Json::array();
  for (const MeasuredConvolution& c : m.convolutions)
    rows.push_back({{"what", c.what},
                    {"type", c.type},
                    {"input", c.input},
                    {"weight", c.weight},
                    {"flops", c.flops},
                    {"seconds", sampled_json(c.seconds)}});
  return rows;
}

// Without rates that were not measured: a device file says only what is known. The libraries' versions are those that this
// program found, which PyTorch need not use: no estimate follows from them.
Json measured_json(const DeviceMeasurement& m) {
  const MeasuredRates& rates = m.rates;
  Json measured = {{"date", m.date},
                   {"quick", m.quick},
                   {"driver", m.driver},
                   {"driver_cuda", m.driver_cuda},
                   {"cuda_runtime", m.libraries.cuda},
                   {"cublas", m.cublas},
                   {"cudnn", m.libraries.cudnn}};
  if (!m.emulated && !m.others_counted) measured["outside"] = rates.outside.count;
  const auto add = [&](const char* name, double rate) {
    if (rate > 0) measured[name] = rate;
  };
  add("bandwidth", rates.bandwidth);
  add("flops_f32", rates.flops_f32);
  add("flops_tf32", rates.flops_tf32);
  add("flops_f16", rates.flops_f16);
  add("flops_f64", rates.flops_f64);
  measured["growth"] = growth_json(m);
  const Granularities& g = m.granularities;
  measured["granularities"] = {{"malloc_least", g.malloc_least.count},
                               {"malloc_step", g.malloc_step.count},
                               {"mapped_least", g.mapped_least.count},
                               {"mapped_recommended", g.mapped_recommended.count}};
  measured["clocks"] = clocks_json(m.clocks);
  measured["launch"] = {{"behind_another", sampled_json(m.launch)},
                        {"waited_for", sampled_json(m.launch_wait)}};
  measured["copies"] = copies_json(m);
  measured["elementwise"] = elementwise_json(m);
  measured["products"] = products_json(m);
  measured["convolutions"] = convolutions_json(m);
  return measured;
}

}  // namespace

std::string device_file(const DeviceMeasurement& m) {
  const Hardware& card = m.hardware;
  Json file = Json::object();
  if (!m.like.empty()) file["like"] = m.like;
  file["name"] = card.name;
  file["title"] = card.title;
  file["type"] = "cuda";
  file["memory"] = card.memory.count;
  file["sm"] = card.sm;
  file["multiprocessors"] = card.multiprocessors;
  file["threads_per_multiprocessor"] = card.threads_per_multiprocessor;
  file["blocks_per_multiprocessor"] = card.blocks_per_multiprocessor;
  file["shared_memory_per_block"] = card.shared_memory_per_block;
  const auto add = [&](const char* name, const auto& value) {
    if (value > 0) file[name] = value;
  };
  add("l2_cache", card.l2_cache.count);
  add("clock_khz", card.clock_khz);
  add("memory_clock_khz", card.memory_clock_khz);
  add("bandwidth", card.bandwidth);
  add("flops_f32", card.flops_f32);
  add("flops_tf32", card.flops_tf32);
  add("flops_f16", card.flops_f16);
  add("flops_f64", card.flops_f64);
  file["measured"] = measured_json(m);
  return json_text(file);
}

}  // namespace metaprof
