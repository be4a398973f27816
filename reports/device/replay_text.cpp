#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/device/replay_report.h"
#include "reports/device/version_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;
constexpr size_t kMostOps = 12, kMostDifferences = 10;

std::string milliseconds(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f}", *seconds * 1e3) : "-";
}

std::string percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f} %", 100 * part / whole) : "-";
}

std::string opening(const ReplayComparison& c) {
  const DeviceReplay& real = c.real;
  const int64_t grown = real.used_after.count - real.used_before.count;
  return fmt::format(
      "{} on {} (device {}), driver for CUDA {}, cuBLAS {}, cuDNN {}\n"
      "{} of the device's {} were in use before the first request; outside the allocator this grew by {} "
      "until the end\n",
      c.model, real.title, real.ordinal, cuda_version_text(real.driver), library_version_text(real.cublas),
      library_version_text(real.cudnn), human_bytes(real.used_before.count), human_bytes(real.memory.count),
      human_bytes(std::max<int64_t>(grown, 0)));
}

// Beside an estimate that ran out of memory earlier the columns are empty.
std::string part_table(const ReplayComparison& c, size_t width) {
  TextTable table;
  const Phases &estimated = c.estimated, &real = c.real.phases;
  const Unit unit =
      unit_for_bytes(std::max(estimated.peak.reserved_bytes.peak, real.peak.reserved_bytes.peak));
  table.column("part", Align::left);
  table.column(fmt::format("reserved peak, {}: estimated", unit.name));
  for (const char* title : {"real", "device in use"}) table.column(title);
  table.column("ms: expected");
  table.column("measured");
  for (size_t i = 0; i < std::max(estimated.rows.size(), real.rows.size()); ++i) {
    const PhaseRow* const one = i < estimated.rows.size() ? &estimated.rows[i] : nullptr;
    const PhaseRow* const other = i < real.rows.size() ? &real.rows[i] : nullptr;
    const auto reserved = [&](const PhaseRow* row) {
      return row ? in_unit(row->numbers.reserved_bytes.peak, unit) : "-";
    };
    const bool has_part = i < c.real.parts.size();
    table.row({to_string((other ? other : one)->part), reserved(one), reserved(other),
               has_part ? in_unit(c.real.parts[i].most_used.count, unit) : "-",
               has_part ? milliseconds(c.real.parts[i].expected) : "-",
               milliseconds(has_part ? c.real.parts[i].seconds : std::nullopt)});
  }
  return table.text(0, width);
}

std::string memory_lines(const ReplayComparison& c) {
  const Phases &estimated = c.estimated, &real = c.real.phases;
  const SegmentCalls& calls = c.real.segments;
  const auto failed = [](const Phases& phases) {
    return phases.out_of_memory ? fmt::format("in {}, a request of {}", to_string(phases.out_of_memory->part),
                                              human_bytes(phases.out_of_memory->requested.count))
                                : "nowhere";
  };
  return fmt::format(
      "reserved at most: estimated {}, real {} bytes; in use on the device at most {}\n"
      "out of memory: estimated {}, real {}\n"
      "segments: {} by cudaMalloc, {} given back; {} pages mapped, {} unmapped; {} requests refused\n",
      estimated.peak.reserved_bytes.peak, real.peak.reserved_bytes.peak, human_bytes(c.real.most_used.count),
      failed(estimated), failed(real), calls.allocations, calls.frees, calls.mapped, calls.unmapped,
      calls.refused);
}

std::string list_of(const std::vector<std::string>& differences) {
  std::string text;
  for (size_t i = 0; i < std::min(differences.size(), kMostDifferences); ++i)
    text += "  " + differences[i] + "\n";
  return text;
}

std::string difference_lines(const ReplayComparison& c) {
  std::string text;
  if (c.real.waited > 0)
    text += fmt::format(
        "{} freed blocks waited for another stream, where an estimate has that work over at once\n",
        c.real.waited);
  if (c.differences.empty())
    return text + "memory: requests, segments and every figure of the allocator are as estimated\n";
  if (c.differences_at_addresses.empty())
    return text +
           fmt::format(
               "memory: {} figures differ by what the driver decides: told its addresses, and what was taken "
               "outside the "
               "allocator meanwhile, the estimate is equal in every figure\n",
               c.differences.size()) +
           list_of(c.differences);
  return text +
         fmt::format(
             "memory: {} figures differ, and {} of an estimate that is told what the driver decided:\n",
             c.differences.size(), c.differences_at_addresses.size()) +
         list_of(c.differences_at_addresses);
}

double sum_of_seconds(const DeviceReplay& real) {
  double sum = 0;
  for (const ReplayedCalls& calls : real.by_kind) sum += calls.seconds.value_or(0);
  return sum;
}

std::string kind_table(const DeviceReplay& real, size_t width) {
  const double all = sum_of_seconds(real);
  TextTable table;
  table.column("the last step's calls, executed as", Align::left);
  for (const char* title : {"calls", "GFLOP", "moved, MB", "ms: expected", "measured", "share"})
    table.column(title);
  for (size_t i = 0; i < kReplayedAs; ++i) {
    const auto as = static_cast<ReplayedAs>(i);
    const ReplayedCalls& calls = real.by_kind[i];
    table.row(
        {fmt::format("{}{}", to_string(as), is_real(as) ? "" : " (stand-in)"), fmt::format("{}", calls.calls),
         fmt::format("{:.1f}", static_cast<double>(calls.flops.count) / 1e9),
         fmt::format("{:.1f}", static_cast<double>(calls.moved.count) / 1e6), milliseconds(calls.expected),
         milliseconds(calls.seconds), percent(calls.seconds.value_or(0), all)});
  }
  return table.text(0, width);
}

std::string op_table(const DeviceReplay& real, size_t width) {
  const double all = sum_of_seconds(real);
  TextTable table;
  table.column("operator", Align::left);
  table.column("executed as", Align::left);
  for (const char* title : {"calls", "ms: expected", "measured", "share"}) table.column(title);
  for (size_t i = 0; i < std::min(real.by_op.size(), kMostOps); ++i) {
    const ReplayedOp& op = real.by_op[i];
    table.row({op.op, std::string(to_string(op.as)), fmt::format("{}", op.total.calls),
               milliseconds(op.total.expected), milliseconds(op.total.seconds),
               percent(op.total.seconds.value_or(0), all)});
  }
  return table.text(0, width);
}

}  // namespace

std::string replay_text(const ReplayComparison& c, size_t width) {
  std::string text = opening(c) + "\n" + part_table(c, width) + "\n" + memory_lines(c) + difference_lines(c);
  text += "\n" + kind_table(c.real, width) + "\n" + op_table(c.real, width);
  if (sum_of_seconds(c.real) == 0)
    text += "\nNo time passed on this device: an emulated one computes nothing.\n";
  return text;
}

}  // namespace metaprof
