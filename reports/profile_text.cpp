#include <fmt/format.h>

#include "reports/format.h"
#include "reports/module_table.h"
#include "reports/node_table.h"
#include "reports/peak_text.h"
#include "reports/profile_report.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

constexpr size_t kMostCharacters = 60;

using Align = TextTable::Align;

std::string heading(const std::string& text, bool colour) {
  return colour ? fmt::format("\n\x1b[1m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
}

std::string opening(const ProfileReport& report) {
  std::string options;
  for (const auto& [name, value] : report.options) {
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (const bool* flag = std::get_if<bool>(&value); flag && !*flag) continue;
    options +=
        fmt::format("{}{} {}", options.empty() ? "" : ", ", name, shown(to_text(value), kMostCharacters));
  }
  if (!options.empty()) options += '\n';
  return fmt::format("{} on {} ({})\n{}", shown(report.model, kMostCharacters),
                     shown(report.device_title, kMostCharacters), shown(report.device, kMostCharacters),
                     options);
}

std::string totals(const ProfileReport& report) {
  const Cost& total = report.counts.total;
  const PhaseSeconds& roofline = report.counts.roofline;
  const Parameters& parameters = report.memory.parameters;
  TextTable table;
  table.column("first step", Align::left);
  for (const char* phase : {"forward", "backward", "recompute", "optimizer"}) table.column(phase);
  const auto flops_row = [&](const char* what, const ByPhase<Flops>& flops) {
    const Unit unit =
        unit_for_flops(std::max({flops.forward, flops.backward, flops.recompute, flops.optimizer}).count);
    table.row({fmt::format("{}, {}", what, unit.name), in_unit(flops.forward.count, unit),
               in_unit(flops.backward.count, unit), in_unit(flops.recompute.count, unit),
               in_unit(flops.optimizer.count, unit)});
  };
  flops_row("matrix products, convolutions, attention", total.counted);
  flops_row("all operators", total.all);
  const ByPhase<Bytes>& moved = total.moved;
  const Unit unit =
      unit_for_bytes(std::max({moved.forward, moved.backward, moved.recompute, moved.optimizer}).count);
  table.row({fmt::format("memory traffic at least, {}", unit.name), in_unit(moved.forward.count, unit),
             in_unit(moved.backward.count, unit), in_unit(moved.recompute.count, unit),
             in_unit(moved.optimizer.count, unit)});
  const auto intensity = [](Flops flops, Bytes bytes) {
    return bytes.count == 0 ? "-" : fmt::format("{:.1f}", arithmetic_intensity(flops, bytes));
  };
  table.row({"FLOPs per byte", intensity(total.all.forward, moved.forward),
             intensity(total.all.backward, moved.backward), intensity(total.all.recompute, moved.recompute),
             intensity(total.all.optimizer, moved.optimizer)});
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
  table.row({"time at least, ms", milliseconds(roofline.forward), milliseconds(roofline.backward),
             milliseconds(roofline.recompute), milliseconds(roofline.optimizer)});

  return table.text() +
         fmt::format("parameters: {} in {} tensors, {}; trainable: {}\n", grouped(parameters.all.count),
                     parameters.all.tensors, both_units(parameters.all.bytes.count),
                     grouped(parameters.trainable.count)) +
         fmt::format("buffers: {} in {} tensors, {}\n", grouped(parameters.buffers.count),
                     parameters.buffers.tensors, both_units(parameters.buffers.bytes.count)) +
         fmt::format("kept for backward: {} storages, {}\n", report.memory.saved.count,
                     both_units(report.memory.saved.bytes.count));
}

std::string unmodelled_table(const std::vector<UnmodelledRow>& rows) {
  TextTable table;
  table.column("operator", Align::left);
  table.column("calls");
  table.column("share of output bytes, %");
  table.column("first called in", Align::left);
  for (const UnmodelledRow& row : rows)
    table.row({shown(row.op, kMostCharacters), fmt::format("{}", row.calls),
               fmt::format("{:.1f}", 100 * row.share_of_output_bytes), shown(row.module, kMostCharacters)});
  return table.text(2);
}

std::string peak_lines(const MemoryProfile& memory) {
  const AllocatorNumbers& numbers = memory.phases.peak;
  return fmt::format("{} allocated, {} reserved; reached in {}{}\n", both_units(numbers.allocated_bytes.peak),
                     both_units(numbers.reserved_bytes.peak), place(memory.peak.part),
                     culprit(memory.peak.op, memory.peak.module));
}

std::string closing(const ProfileReport& report, bool colour) {
  const Phases& phases = report.memory.phases;
  const int64_t memory = report.device_memory.count, reserved = phases.peak.reserved_bytes.peak;
  std::string text;
  if (const auto& failed = phases.out_of_memory) {
    text = fmt::format(
        "Does not fit on {} ({}): out of memory in {}{}, which asks for {} while {} are allocated",
        report.device, human_bytes(memory), place(failed->part), culprit(failed->op, failed->module),
        human_bytes(failed->requested.count), human_bytes(phases.peak.allocated_bytes.current));
    if (report.needed_memory)
      text += fmt::format("; {} would be reserved without the limit, {} more than there are",
                          human_bytes(report.needed_memory->count),
                          human_bytes(report.needed_memory->count - memory));
  } else if (reserved > memory) {
    text = fmt::format("Does not fit on {} ({}): {} are missing", report.device, human_bytes(memory),
                       human_bytes(reserved - memory));
  } else {
    return fmt::format("\nFits on {} ({}): {} stay free\n", report.device, human_bytes(memory),
                       human_bytes(memory - reserved));
  }
  return colour ? fmt::format("\n\x1b[1;31m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
}

}  // namespace

std::string profile_text(const ProfileReport& report, const TextOptions& options) {
  const MemoryProfile& memory = report.memory;
  const auto title = [&](const std::string& text) { return heading(text, options.colour); };
  std::string text = opening(report);
  if (report.nodes) {
    text += title("Nodes (bytes without rounding; FLOPs: 2 per multiply-add; times of an ideal device)");
    text += to_string(node_table(report, options), TableForm::text);
    text += node_totals(*report.nodes);
  } else {
    text += title("Modules (with what is inside them; bytes without rounding; FLOPs: 2 per multiply-add)");
    const ModuleTable modules = module_table(report, options, false);
    text += to_string(modules.table, TableForm::text);
    if (modules.hidden > 0)
      text +=
          fmt::format("{} modules deeper than {} are not shown (--depth)\n", modules.hidden, options.depth);
  }
  text += title("Totals (FLOPs: 2 per multiply-add)");
  text += totals(report);
  text += title("Peak");
  text += peak_lines(memory);
  if (memory.peak.bytes.count > 0) {
    text += category_table(memory.peak);
    text += title("Largest tensors alive at the peak");
    text += largest_table(memory.peak);
  }
  if (!memory.unmodelled.empty()) {
    text += title("Not modelled: results as the program records them, temporaries and FLOPs unknown");
    text += unmodelled_table(memory.unmodelled);
  }
  if (const std::string note = workspace_note(report.workspaces); !note.empty())
    text += fmt::format("\nNote: {}\n", note);
  return text + closing(report, options.colour);
}

}  // namespace metaprof
