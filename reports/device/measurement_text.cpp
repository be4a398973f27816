#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/device/measurement_report.h"
#include "reports/device/version_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;

// "1234.5" of the median, and how far the samples are from it: "-3 % … +5 %".
std::string microseconds(const std::optional<Sampled>& seconds) {
  return seconds ? fmt::format("{:.2f}", seconds->median * 1e6) : "-";
}
std::string spread(const std::optional<Sampled>& seconds) {
  if (!seconds || seconds->median <= 0) return "-";
  return fmt::format("{:+.1f} … {:+.1f} %", 100 * (seconds->least / seconds->median - 1),
                     100 * (seconds->most / seconds->median - 1));
}
std::string rate(double amount, const std::optional<Sampled>& seconds, double unit) {
  return seconds && seconds->median > 0 ? fmt::format("{:.1f}", amount / seconds->median / unit) : "-";
}

std::string opening(const DeviceMeasurement& m) {
  const Hardware& card = m.hardware;
  std::string text = fmt::format(
      "{}{}, compute capability {}.{}, {} multiprocessors, {}\n"
      "driver {} (CUDA {}), CUDA runtime {}, cuBLAS {}, cuDNN {}; {}{}\n",
      card.title, m.emulated ? " (emulated: no times)" : "", card.sm / 10, card.sm % 10, card.multiprocessors,
      human_bytes(card.memory.count), m.driver.empty() ? "-" : m.driver, cuda_version_text(m.driver_cuda),
      cuda_version_text(m.libraries.cuda), library_version_text(m.cublas),
      library_version_text(m.libraries.cudnn), m.date, m.quick ? ", quick" : "");
  const auto clock = [](std::optional<int64_t> now, std::optional<int64_t> most) {
    return fmt::format("{} of {} MHz", now ? fmt::format("{}", *now) : "-",
                       most ? fmt::format("{}", *most) : "-");
  };
  text += fmt::format("clocks behind the measurement: multiprocessors {}, memory {}",
                      clock(m.clocks.sm_mhz, m.clocks.sm_mhz_most),
                      clock(m.clocks.memory_mhz, m.clocks.memory_mhz_most));
  if (m.clocks.celsius) text += fmt::format("; {} °C", *m.clocks.celsius);
  if (m.clocks.power_limit_watts) text += fmt::format("; power limit {:.0f} W", *m.clocks.power_limit_watts);
  return text + "\n";
}

std::string outside_table(const DeviceMeasurement& m, size_t width) {
  TextTable table;
  table.column("memory outside the allocator", Align::left);
  table.column("MiB");
  for (const MemoryGrowth& growth : m.outside)
    table.row({growth.what, fmt::format("{:.1f}", static_cast<double>(growth.bytes.count) / (1 << 20))});
  table.row({"all", fmt::format("{:.1f}", static_cast<double>(m.rates.outside.count) / (1 << 20))});
  std::string text = table.text(0, width);
  if (m.others_counted)
    text +=
        "the context's figure includes what other processes have in use, so the file has no figure of all\n";
  const Granularities& g = m.granularities;
  return text + fmt::format(
                    "cudaMalloc takes at least {}, and one byte more than 2 MiB {} more; pages of "
                    "cuMemCreate: at least {}, "
                    "recommended {}\n",
                    human_bytes(g.malloc_least.count), human_bytes(g.malloc_step.count),
                    human_bytes(g.mapped_least.count), human_bytes(g.mapped_recommended.count));
}

std::string copy_table(const DeviceMeasurement& m, size_t width) {
  TextTable table;
  table.column("copy", Align::left);
  for (const char* title : {"size", "µs", "spread", "GB/s"}) table.column(title);
  for (const MeasuredCopy& copy : m.copies) {
    const int passes = copy.direction == "device to device" ? 2 : 1;  // read and written
    table.row({copy.direction, human_bytes(copy.bytes.count), microseconds(copy.seconds),
               spread(copy.seconds),
               rate(passes * static_cast<double>(copy.bytes.count), copy.seconds, 1e9)});
  }
  return table.text(0, width);
}

std::string elementwise_table(const DeviceMeasurement& m, size_t width) {
  TextTable table;
  table.column("sum of two tensors, of");
  for (const char* title : {"bytes per load", "µs", "spread", "GB/s"}) table.column(title);
  for (const MeasuredElementwise& row : m.elementwise)
    table.row({human_bytes(row.bytes.count), fmt::format("{}", row.bytes_per_load), microseconds(row.seconds),
               spread(row.seconds), rate(3 * static_cast<double>(row.bytes.count), row.seconds, 1e9)});
  return table.text(0, width);
}

std::string product_table(const DeviceMeasurement& m, size_t width) {
  TextTable table;
  table.column("product", Align::left);
  for (const char* title : {"rows", "columns", "inner", "µs", "spread", "TFLOP/s"}) table.column(title);
  for (const MeasuredProduct& p : m.products) {
    const double flops =
        2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) * static_cast<double>(p.inner);
    table.row({p.type, fmt::format("{}", p.rows), fmt::format("{}", p.columns), fmt::format("{}", p.inner),
               microseconds(p.seconds), spread(p.seconds), rate(flops, p.seconds, 1e12)});
  }
  return table.text(0, width);
}

std::string convolution_table(const DeviceMeasurement& m, size_t width) {
  if (m.convolutions.empty()) return "cuDNN is not there: no convolutions\n";
  TextTable table;
  table.column("convolution", Align::left);
  table.column("type", Align::left);
  for (const char* title : {"input", "weight", "µs", "spread", "TFLOP/s"}) table.column(title);
  for (const MeasuredConvolution& c : m.convolutions)
    table.row({c.what, c.type == "f32" ? "f32 (in TF32)" : c.type, fmt::format("{}", fmt::join(c.input, "×")),
               fmt::format("{}", fmt::join(c.weight, "×")), microseconds(c.seconds), spread(c.seconds),
               rate(c.flops, c.seconds, 1e12)});
  return table.text(0, width);
}

std::string summary(const DeviceMeasurement& m) {
  const MeasuredRates& rates = m.rates;
  if (m.emulated) return "";
  return fmt::format(
      "large kernels reach {:.0f} GB/s (data sheet {:.0f}); large products TFLOP/s: bf16 {:.0f} ({:.0f}), "
      "tf32 {:.0f} ({:.0f}), "
      "f32 {:.1f} ({:.1f}), f64 {:.1f} ({:.1f})\n"
      "a launch behind another takes {} µs, one for which the host waits {} µs\n",
      rates.bandwidth / 1e9, m.hardware.bandwidth / 1e9, rates.flops_f16 / 1e12, m.hardware.flops_f16 / 1e12,
      rates.flops_tf32 / 1e12, m.hardware.flops_tf32 / 1e12, rates.flops_f32 / 1e12,
      m.hardware.flops_f32 / 1e12, rates.flops_f64 / 1e12, m.hardware.flops_f64 / 1e12,
      microseconds(m.launch), microseconds(m.launch_wait));
}

}  // namespace

std::string measurement_text(const DeviceMeasurement& m, size_t width) {
  return opening(m) + "\n" + outside_table(m, width) + "\n" + copy_table(m, width) + "\n" +
         elementwise_table(m, width) + "\n" + product_table(m, width) + "\n" + convolution_table(m, width) +
         "\n" + summary(m);
}

}  // namespace metaprof
