#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/profile/answer.h"
#include "reports/profile/costs.h"
#include "reports/profile/module_table.h"
#include "reports/profile/node_table.h"
#include "reports/profile/profile_report.h"
#include "reports/sections/cache_row.h"
#include "reports/sections/epoch_report.h"
#include "reports/sections/execution_figures.h"
#include "reports/sections/folded_module.h"
#include "reports/sections/peak_contributors.h"
#include "reports/sections/peak_text.h"
#include "reports/sections/verdict.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;

std::string opening_line(std::string_view title, const std::string& text) {
  return text.empty() ? text : fmt::format("{}{}\n", title, text);
}

// What the program's own run decided, so that the reader knows that nobody asked for it.
std::string of_run_line(const ProfileReport& report) {
  if (report.of_run.empty()) return "";
  return fmt::format("as in the run that was captured, unless asked for: {}\n",
                     fmt::join(report.of_run, ", "));
}

std::string opening(const ProfileReport& report, bool colour) {
  const std::string verdict = verdict_line(report);
  const char* paint = verdict_of(report).fits ? "\x1b[1;32m" : "\x1b[1;31m";
  const std::string framework =
      report.framework.empty() ? ""
                               : fmt::format(", PyTorch {}, {}", report.framework, report.framework_reason);
  return fmt::format(
      "{}{}{}\n{}{} on {} ({}){}\n{}{}{}", colour ? paint : "", verdict, colour ? "\x1b[0m" : "",
      runs_from_line(verdict_of(report), report.runs_from), shown(report.model, kMostCharactersOfName),
      shown(report.device_title, kMostCharactersOfName), shown(report.device, kMostCharactersOfName),
      framework, opening_line("inputs ", inputs_text(report.inputs)), opening_line("", options_text(report)),
      of_run_line(report));
}

std::string totals(const ProfileReport& report) {
  const Parameters& parameters = report.memory.parameters;
  const std::string not_computed =
      report.not_computed ? fmt::format("gradients that nobody asked for, not computed: {} FLOP\n",
                                        grouped(report.not_computed->count))
                          : "";
  return costs_table(report.counts) + not_computed +
         fmt::format("parameters: {} in {} tensors, {}; trainable: {}\n", grouped(parameters.all.count),
                     parameters.all.tensors, both_units(parameters.all.bytes.count),
                     grouped(parameters.trainable.count)) +
         fmt::format("buffers: {} in {} tensors, {}\n", grouped(parameters.buffers.count),
                     parameters.buffers.tensors, both_units(parameters.buffers.bytes.count)) +
         fmt::format("kept for backward: {} storages, {}\n", report.memory.saved.count,
                     both_units(report.memory.saved.bytes.count)) +
         (report.memory.saved.besides_bytes.count == 0
              ? ""
              : fmt::format("alive besides when the forward ends (outputs, inputs of checkpointed regions): "
                            "{} storages, {}\n",
                            report.memory.saved.besides_count,
                            both_units(report.memory.saved.besides_bytes.count)));
}

std::string unmodelled_table(const std::vector<UnmodelledRow>& rows) {
  TextTable table;
  table.column("operator", Align::left);
  table.column("calls");
  table.column("share of output bytes, %");
  table.column("first called in", Align::left);
  table.column("why", Align::left);
  for (const UnmodelledRow& row : rows)
    table.row({shown(row.op, kMostCharactersOfName), fmt::format("{}", row.calls),
               fmt::format("{:.1f}", 100 * row.share_of_output_bytes),
               shown(row.module, kMostCharactersOfName),
               row.assumed ? "size follows from data" : "unknown: no temporaries, no FLOPs"});
  return table.text(2);
}

std::string estimated_table(const std::vector<EstimatedRow>& rows) {
  TextTable table;
  table.column("operator", Align::left);
  table.column("storages");
  table.column("together");
  table.column("largest");
  table.column("first called in", Align::left);
  for (const EstimatedRow& row : rows)
    table.row({shown(row.op, kMostCharactersOfName), fmt::format("{}", row.storages),
               row.bytes.count ? human_bytes(row.bytes.count) : "not known",
               row.largest.count ? human_bytes(row.largest.count) : "not known",
               shown(row.module, kMostCharactersOfName)});
  return table.text(2);
}

// "  12 × model.h.*.attn: memory-efficient (query f32[4,12,512,64]); not flash: it takes fp16 and bf16 alone"
std::string attention_lines(const std::vector<AttentionRow>& rows) {
  std::string text;
  for (const AttentionRow& row : rows) {
    text += fmt::format("  {}: {}", folded_modules(row.modules), row.implementation);
    if (!row.query.empty()) text += fmt::format(" (query {}, key {})", row.query, row.key);
    for (const auto& [implementation, why] : row.refused)
      text += fmt::format("; not {}: {}", implementation, why);
    text += '\n';
  }
  return text;
}

std::string peak_lines(const MemoryProfile& memory) {
  const AllocatorNumbers& numbers = memory.phases.peak;
  return fmt::format("{} allocated, {} reserved; reached in {}{}\n", both_units(numbers.allocated_bytes.peak),
                     both_units(numbers.reserved_bytes.peak), place(memory.peak.part),
                     in_call(memory.peak.op, memory.peak.module));
}

// Where memory ran out, and how it stood then.
std::string out_of_memory(const ProfileReport& report, bool colour) {
  const auto red = [&](const std::string& text) {
    return colour ? fmt::format("\n\x1b[1;31m{}\x1b[0m\n", text) : fmt::format("\n{}\n", text);
  };
  if (report.epoch) {
    const std::string line = epoch_end_line(*report.epoch);
    return line.empty() ? "" : red(line);
  }
  const auto& failed = report.memory.phases.out_of_memory;
  if (!failed) return "";
  const int64_t idle = failed->reserved.count - failed->allocated.count;
  return red(fmt::format(
      "Out of memory in {}{}: it asks for {} while {} are allocated and {} lie in the allocator's cache in "
      "pieces that are too small",
      place(failed->part), in_call(failed->op, failed->module), human_bytes(failed->requested.count),
      human_bytes(failed->allocated.count), human_bytes(idle)));
}

std::string before_modules(const ProfileReport& report, const TextOptions& options) {
  std::string text;
  if (report.epoch)
    text +=
        heading("The whole epoch (what follows it is of the batch with the most tokens)", options.colour) +
        epoch_text(*report.epoch);
  if (!report.peak_contributors.empty())
    text += heading("Why: what is alive at the peak", options.colour) +
            peak_contributors_table(report.peak_contributors, options.width);
  if (!report.memory.attention.empty())
    text += heading("Attention: which implementation ran, and why not another", options.colour) +
            attention_lines(report.memory.attention);
  return text;
}

std::string modules_or_nodes(const ProfileReport& report, const TextOptions& options) {
  if (report.nodes)
    return heading("Nodes (bytes without rounding; FLOPs: 2 per multiply-add; times of an ideal device)",
                   options.colour) +
           to_string(node_table(report, options), TableForm::text, options.width) +
           node_totals(*report.nodes);
  const ModuleTable modules = module_table(report, options, false);
  std::string text =
      heading("Modules (with what is inside them; bytes without rounding; FLOPs: 2 per multiply-add)",
              options.colour) +
      to_string(modules.table, TableForm::text, options.width);
  if (modules.hidden > 0)
    text += fmt::format("{} modules deeper than {} are not shown (--depth)\n", modules.hidden, options.depth);
  return text;
}

// Of other ways that the same step can take.
std::string comparisons(const ProfileReport& report, const TextOptions& options) {
  std::string text;
  if (report.execution)
    text += heading("Eager and compiled as a graph (whole run; FLOPs and kernels of the first step)",
                    options.colour) +
            comparison_text(*report.execution);
  if (report.branches)
    text +=
        heading(fmt::format(
                    "torch.cond: its two functions (this report is of the condition {}; --condition chooses)",
                    report.branches->shown),
                options.colour) +
        comparison_text(*report.branches);
  if (report.loops)
    text += heading("while_loop: how often it runs follows from data (this report assumes 1 trip; --trips N)",
                    options.colour) +
            comparison_text(*report.loops);
  return text;
}

std::string peak_text(const MemoryProfile& memory, const TextOptions& options) {
  std::string text = heading("Peak", options.colour) + peak_lines(memory);
  if (memory.peak.bytes.count > 0)
    text += category_table(memory.peak) + heading("Largest tensors alive at the peak", options.colour) +
            largest_table(memory.peak, nullptr, options.width);
  return text;
}

// What is left out, estimated or assumed.
std::string caveats(const ProfileReport& report, const TextOptions& options) {
  const MemoryProfile& memory = report.memory;
  std::string text;
  if (!memory.unmodelled.empty())
    text +=
        heading("Not modelled: results as the program records them, or as large as assumed", options.colour) +
        unmodelled_table(memory.unmodelled);
  if (!memory.estimated.empty())
    text += heading(
                "Estimated: sizes that only a closed library knows; the rest of this report is exact but for "
                "them",
                options.colour) +
            estimated_table(memory.estimated);
  for (const std::string& note :
       {precision_note(report), guessed_note(report), workspace_source_line(report.workspaces),
        workspace_note(report.workspaces), outside_note(report)})
    if (!note.empty()) text += fmt::format("\nNote: {}\n", note);
  return text;
}

}  // namespace

std::string profile_text(const ProfileReport& report, const TextOptions& options) {
  std::string text = opening(report, options.colour);
  text += out_of_memory(report, options.colour);
  text += before_modules(report, options);
  text += modules_or_nodes(report, options);
  text += heading("Totals (FLOPs: 2 per multiply-add)", options.colour) + totals(report);
  text += comparisons(report, options);
  if (!report.kv_cache.empty())
    text += heading("Cache of keys and values after the call", options.colour) + cache_text(report.kv_cache);
  text += peak_text(report.memory, options);
  text += caveats(report, options);
  return text;
}

}  // namespace metaprof
