#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "capture/launch/growth.h"
#include "capture/launch/peak.h"
#include "core/formats/display.h"
#include "reports/profile/costs.h"
#include "reports/profile/module_table.h"
#include "reports/profile/profile_report.h"
#include "reports/run/phase_table.h"
#include "reports/run/run_report.h"
#include "reports/sections/peak_text.h"
#include "reports/sections/verdict.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;
constexpr size_t kMostFailures = 8;
constexpr size_t kMostHolders = 5;
constexpr int64_t kLeastShare =
    1000;  // a variable that holds less than a thousandth of the peak is not listed
constexpr size_t kMostCharactersOfHolder = 100;
// What fits a screen, without --all.
constexpr size_t kMostPhases = 9, kMostModules = 6, kMostTensors = 3, kMostReads = 3, kMostNotes = 3;
constexpr double kLeastCategory = 0.005;  // of the peak

int64_t steps_of(const RankRun& rank) {
  int64_t steps = 0;
  for (const RunPhase& row : rank.recorded.phases)
    if (row.phase != "setup") steps = std::max(steps, row.step + 1);
  return steps;
}

std::string opening(const RunReport& report, const RankRun& rank, bool colour) {
  const Verdict verdict = verdict_of(report, rank);
  const char* paint = verdict.fits ? "\x1b[1;32m" : "\x1b[1;31m";
  return fmt::format("{}{}{}\n{}{}\non {}{}, PyTorch {}{}\n", colour ? paint : "", verdict_line(verdict),
                     colour ? "\x1b[0m" : "", runs_from_line(verdict, rank.runs_from),
                     shown(fmt::format("{}", fmt::join(report.program, " ")), 2 * kMostCharactersOfName),
                     shown(report.device_title, kMostCharactersOfName),
                     report.real ? "" : fmt::format(" ({}, emulated)", report.device), report.torch,
                     report.ended_after_steps ? ", ended after the steps that were asked for" : "");
}

std::string rank_table(const RunReport& report) {
  TextTable table;
  int64_t most = 0;
  for (const RankRun& rank : report.ranks) most = std::max(most, rank.memory.phases.peak.reserved_bytes.peak);
  const Unit unit = unit_for_bytes(most);
  table.column("rank");
  table.column("device");
  table.column("steps");
  table.column(fmt::format("allocated, {}", unit.name));
  table.column(fmt::format("reserved, {}", unit.name));
  table.column("out of memory", Align::left);
  for (const RankRun& rank : report.ranks) {
    const AllocatorNumbers& peak = rank.memory.phases.peak;
    table.row({fmt::format("{}", rank.rank), fmt::format("{}", rank.recorded.device),
               fmt::format("{}", steps_of(rank)), in_unit(peak.allocated_bytes.peak, unit),
               in_unit(peak.reserved_bytes.peak, unit), rank.recorded.out_of_memory.empty() ? "" : "yes"});
  }
  return table.text();
}

// Of a brief report as many levels as fit.
ModuleTable shown_modules(const ProfileReport& profile, TextOptions& options) {
  ModuleTable table = module_table(profile, options, false);
  while (options.brief_modules && options.depth > 0 && table.table.rows.size() > kMostModules) {
    --options.depth;
    table = module_table(profile, options, false);
  }
  return table;
}

std::string modules(const RunReport& report, const RankRun& rank, const RunCosts& costs,
                    const TextOptions& options) {
  TextOptions shown = options;
  if (shown.columns.empty() && !costs.by_rank.contains(rank.rank))
    shown.columns = {"type",        "parameters",   "saved",       "forward_tmp",
                     "forward_out", "backward_tmp", "backward_out"};
  const ModuleTable table = shown_modules(profile_of(report, rank, costs), shown);
  std::string text = to_string(table.table, TableForm::text, options.width);
  if (table.hidden > 0)
    text += fmt::format("{} modules deeper than {} are not shown (--depth)\n", table.hidden, shown.depth);
  return text;
}

std::vector<std::string> short_lines(const RankRun& rank) {
  std::vector<std::string> lines;
  lines.reserve(rank.peak_lines.size());
  for (const std::string& line : rank.peak_lines) lines.push_back(short_line(line));
  return lines;
}

std::string place(const RunPhase& row) {
  return row.phase == "setup" ? row.name : fmt::format("{}, step {}", row.name, row.step + 1);
}

// Where the program takes more memory for something else than for its training.
std::string beside_training(const RankRun& rank) {
  const RunPhase *named = nullptr, *steps = nullptr;
  for (const RunPhase& row : rank.recorded.phases) {
    const RunPhase*& most = row.name == row.phase ? steps : named;
    if (!most || row.numbers.allocated_bytes.peak > most->numbers.allocated_bytes.peak) most = &row;
  }
  if (!named || !steps || named->numbers.allocated_bytes.peak <= steps->numbers.allocated_bytes.peak)
    return "";
  return fmt::format("\nMost memory is taken in {}: {} are allocated there, and {} at most elsewhere ({})\n",
                     place(*named), human_bytes(named->numbers.allocated_bytes.peak),
                     human_bytes(steps->numbers.allocated_bytes.peak), place(*steps));
}

// What no module made says which function of a library did: "aten::cat in nested_concat (transformers/trainer_pt_utils.py:87)".
PeakMoment with_libraries(PeakMoment peak, const std::vector<std::string>& made_in) {
  for (LargeStorage& storage : peak.largest)
    if (storage.module.empty() && storage.name.empty() && storage.storage < made_in.size() &&
        !made_in[storage.storage].empty())
      storage.op += (storage.op.empty() ? "" : " in ") + made_in[storage.storage];
  return peak;
}

// "losses (train.py:31 in fit), a list of 20", with the file as it is called here.
std::string short_holder(const std::string& held_by) {
  const size_t begin = held_by.find('(');
  if (begin == held_by.npos) return held_by;
  const size_t end = std::min({held_by.find(' ', begin), held_by.find(')', begin), held_by.find(',', begin)});
  if (end == held_by.npos) return held_by;
  return held_by.substr(0, begin + 1) + short_line(held_by.substr(begin + 1, end - begin - 1)) +
         held_by.substr(end);
}

std::string holders(const RankRun& rank, const TextOptions& options) {
  const std::vector<PeakHolder> all = peak_holders(rank);
  if (all.empty()) return "";
  TextTable table;
  const Unit unit = unit_for_bytes(all[0].bytes.count);
  table.column(fmt::format("bytes, {}", unit.name));
  table.column("share, %");
  table.column("variable, which leads to them", Align::left);
  for (const PeakHolder& holder : std::span(all).first(std::min(all.size(), kMostHolders))) {
    if (holder.bytes.count * kLeastShare < rank.memory.peak.bytes.count) break;
    table.row({in_unit(holder.bytes.count, unit),
               fmt::format("{:.1f}", 100.0 * static_cast<double>(holder.bytes.count) /
                                         static_cast<double>(rank.memory.peak.bytes.count)),
               std::string(shown(short_holder(holder.held_by), kMostCharactersOfHolder))});
  }
  return heading("Held at the peak by", options.colour) + table.text(2, options.width);
}

std::string peak(const RankRun& rank, const TextOptions& options) {
  const MemoryProfile& memory = rank.memory;
  const AllocatorNumbers& numbers = memory.phases.peak;
  std::string text = fmt::format("{} allocated, {} reserved", both_units(numbers.allocated_bytes.peak),
                                 both_units(numbers.reserved_bytes.peak));
  if (rank.reserved_at_once)
    text +=
        fmt::format(" ({} if streams are done at once, {} {}{})", human_bytes(rank.reserved_at_once->count),
                    human_bytes(numbers.reserved_bytes.peak), rank.expected ? "expected" : "if they are late",
                    rank.recorded.waiting.line.empty() ? "" : ": " + short_line(rank.recorded.waiting.line));
  if (memory.peak.bytes.count == 0) return text + '\n';
  const std::vector<std::string> lines = short_lines(rank);
  text += fmt::format("; reached in {}{}\n",
                      named_peak(rank) ? place(*named_peak(rank)) : place(memory.peak.part),
                      in_call(memory.peak.op, memory.peak.module));
  text += category_table(memory.peak, options.brief ? kLeastCategory : 0);
  if (rank.peak_is_near) text += "(what is alive is of an earlier moment, with up to 2 % less)\n";
  text += holders(rank, options);
  text += heading("Largest tensors alive at the peak", options.colour);
  PeakMoment shown = with_libraries(memory.peak, rank.peak_made_in);
  if (options.brief && shown.largest.size() > kMostTensors) shown.largest.resize(kMostTensors);
  return text + largest_table(shown, &lines, options.width);
}

// Where a tenth of the reserved memory and more is not allocated when most is: what an allocator that moves the ends of its segments
// does not have.
std::string fragmentation(const RankRun& rank) {
  const AllocatorNumbers& peak = rank.memory.phases.peak;
  const int64_t cached = peak.reserved_bytes.peak - peak.allocated_bytes.peak;
  if (cached == 0 || cached * 10 < peak.reserved_bytes.peak ||
      rank.alloc_conf.find("expandable_segments:True") != std::string::npos)
    return {};
  return fmt::format(
      "{} of the reserved memory ({:.0f} %) are cached in pieces even when most is allocated: "
      "--alloc-conf expandable_segments:True shows the peak without them\n",
      human_bytes(cached),
      100.0 * static_cast<double>(cached) / static_cast<double>(peak.reserved_bytes.peak));
}

std::string reads(const RankRun& rank, bool brief) {
  TextTable table;
  table.column("operator", Align::left);
  table.column("times");
  table.column("answer", Align::left);
  table.column("line", Align::left);
  const std::span<const DataRead> all(rank.recorded.reads);
  const std::span<const DataRead> listed = brief ? all.first(std::min(all.size(), kMostReads)) : all;
  for (const DataRead& read : listed)
    table.row({shown(read.op, kMostCharactersOfName), fmt::format("{}", read.count), read.source,
               shown(short_line(read.line), kMostCharactersOfName)});
  std::string text = table.text(2);
  if (listed.size() < all.size())
    text += fmt::format("{} more are not shown (--all)\n", all.size() - listed.size());
  if (std::ranges::any_of(all, [](const DataRead& read) { return read.source == "unknown"; }))
    text +=
        "unknown answers are 0: an unknown mask has no element set (--assume both: the peak with all of them "
        "set, too)\n";
  return text;
}

std::string notes(const RunReport& report, const RankRun& rank, bool brief) {
  std::string text;
  if (rank.recorded.outside_allocator && rank.recorded.outside_allocator->count > 0)
    text += fmt::format("outside the allocator: {}{}\n", both_units(rank.recorded.outside_allocator->count),
                        report.real ? " (context, libraries, other processes)" : " (libraries)");
  if (!report.real && !brief)
    text +=
        "an emulated device has no driver: what lies outside the allocator is what is reported for such "
        "cards "
        "(docs/reference/devices.md)\n";
  if (!report.real && !report.asked_cudnn)
    text += "workspaces of convolutions count as 0 (--workspaces none)\n";
  if (!report.real && rank.emulated.planned > 0)
    text += fmt::format("workspaces of {} kinds of convolutions and attention are as large as cuDNN says\n",
                        rank.emulated.planned);
  if (rank.emulated.unplanned > 0)
    text += fmt::format("cuDNN gave no plan for {} kinds of convolutions: their workspaces count as 0\n",
                        rank.emulated.unplanned);
  if (!rank.model_difference.empty())
    text += fmt::format(
        "the allocator's model differs from what the allocator said, first in {}: what was alive at the peak "
        "may, too\n",
        rank.model_difference);
  const size_t listed = brief ? std::min(report.notes.size(), kMostNotes) : report.notes.size();
  for (size_t i = 0; i < listed; ++i) text += report.notes[i] + '\n';
  if (listed < report.notes.size())
    text += fmt::format("{} more notes are not shown (--all)\n", report.notes.size() - listed);
  return text;
}

// A line for each time that memory ran out: where, and how it stood then.
std::string failures(const RunReport& report, const RankRun& rank, bool colour) {
  const std::vector<RecordedOutOfMemory>& all = rank.recorded.out_of_memory;
  if (all.empty()) return "";
  std::string text;
  const size_t hidden = all.size() - std::min(all.size(), kMostFailures);
  if (hidden > 0) text += fmt::format("\nOut of memory {} times; the last {}:", all.size(), kMostFailures);
  for (size_t i = hidden; i < all.size(); ++i) {
    const RecordedOutOfMemory& failed = all[i];
    text += fmt::format(
        "\nOut of memory in {}{}{}{}: it asks for {} while {} are allocated and {} reserved", failed.phase,
        failed.phase == "setup" ? "" : fmt::format(", step {}", failed.step + 1), in_call("", failed.module),
        failed.line.empty() ? "" : fmt::format(", {}", short_line(failed.line)),
        human_bytes(failed.requested.count), human_bytes(failed.allocated.count),
        human_bytes(failed.reserved.count));
    if (i + 1 < all.size() || rank.reserved_since_recovery || report.end.status == 0)
      text += "; the program went on";
  }
  if (rank.reserved_since_recovery)
    text += fmt::format("\nSince then at most {} are reserved: the verdict is of what the program settled on",
                        human_bytes(rank.reserved_since_recovery->count));
  return colour ? fmt::format("\x1b[1;31m{}\x1b[0m\n", text) : text + '\n';
}

// What grows, from where, and what is usually done about it.
std::string growth(const RankRun& rank) {
  const auto at = [](const std::string& line) {
    return line.empty() ? "" : fmt::format(" ({})", short_line(line));
  };
  const auto held = [](const std::string& held_by) {
    return held_by.empty()
               ? ""
               : fmt::format("; {} holds it", shown(short_holder(held_by), kMostCharactersOfHolder));
  };
  std::string text;
  if (const auto calls = growth_by_call(rank.recorded))
    text += fmt::format(
        "\nMemory grows: {} calls of {} without a backward in {} of step {}{}, and each leaves {} more{}. "
        "{}\n",
        calls->calls, shown(calls->module, kMostCharactersOfName), calls->phase, calls->step + 1,
        at(calls->line), human_bytes(calls->per_call.count), held(holder_of_results(rank)),
        calls->phase == "evaluate"
            ? "What they return stays on the device: keep numbers, or move the outputs to the host (.cpu())"
            : "What they keep for a backward is still referenced: run them under torch.no_grad(), or keep "
              "numbers (loss.item()) instead of tensors");
  if (const auto steps = growth_by_step(rank.recorded, rank.outside))
    text += fmt::format(
        "\nMemory grows: each of {} steps leaves {} more that no later step frees{}{}{}{}\n", steps->steps,
        human_bytes(steps->per_step.count),
        steps->op.empty() ? "" : fmt::format(", made by {}", shown(steps->op, kMostCharactersOfName)),
        at(steps->line), held(steps->held_by),
        rank.recorded.out_of_memory.empty() ? fmt::format(". This device is full at step {}", steps->ends_at)
                                            : "");
  if (const auto steady = steady_steps(rank.recorded); text.empty() && steady) {
    const bool same = steady->least == steady->most;
    text += fmt::format("\nMemory does not grow: {}{} are allocated after each of steps {} to {}\n",
                        same ? "" : human_bytes(steady->least.count) + " to ",
                        human_bytes(steady->most.count), steady->first + 1, steady->last + 1);
  }
  return text;
}

std::string outcome(const TriedFix& fix) {
  if (!fix.ended.empty()) return "ended by " + fix.ended;
  if (fix.ran_out) return "runs out of memory";
  return fmt::format("{}{}", fix.fits ? "fits" : "does not fit", fix.by_program ? " (captured)" : "");
}

bool makes_no_difference(const TriedFix& fix, const TriedFix& none) {
  return fix.ended.empty() && fix.allocated == none.allocated && fix.reserved == none.reserved &&
         fix.fits == none.fits && fix.ran_out == none.ran_out;
}

// What the program took with each change, beside what it takes.
std::string fixes(const RunReport& report, const RankRun& rank, bool colour) {
  if (!report.fixes) {
    if (verdict_of(report, rank).fits || report.possible_fixes.empty()) return "";
    return "\n--fixes runs the program again with each change that may help, and shows what it takes then\n";
  }
  const TriedFixes& tried = *report.fixes;
  TextTable table;
  const Unit unit = unit_for_bytes(tried.none.reserved.count);
  table.column(fmt::format("allocated, {}", unit.name));
  table.column("reserved");
  table.column("", Align::left);
  table.column("change", Align::left);
  table.row({in_unit(tried.none.allocated.count, unit), in_unit(tried.none.reserved.count, unit),
             outcome(tried.none), "none"});
  std::vector<std::string> same;
  for (const TriedFix& fix : tried.rows) {
    if (makes_no_difference(fix, tried.none)) {
      same.push_back(fix.change);
      continue;
    }
    table.row({fix.ended.empty() ? in_unit(fix.allocated.count, unit) : "",
               fix.ended.empty() ? in_unit(fix.reserved.count, unit) : "", outcome(fix), fix.change});
  }
  std::string text = heading("What it takes at most with one change", colour) + table.text(2);
  if (!same.empty()) text += fmt::format("no difference: {}\n", fmt::join(same, "; "));
  if (tried.has_room)
    text += "figures are what the program asks for on a device with room for it; it ran again for each\n";
  return text;
}

std::string other_answers(const RunReport& report) {
  if (!report.other_answers) return "";
  const OtherAnswers& other = *report.other_answers;
  const std::string_view kZero = "unknown answers as 0", kAll = "all elements of unknown masks set";
  return fmt::format("\nThis report has {}. With {} the program takes {} (reserved {}) at most{}\n",
                     other.all_set ? kZero : kAll, other.all_set ? kAll : kZero,
                     human_bytes(other.peaks.allocated.count), human_bytes(other.peaks.reserved.count),
                     other.peaks.ran_out    ? ", and memory runs out"
                     : !other.ended.empty() ? fmt::format(", and is ended by {}", other.ended)
                                            : "");
}

}  // namespace

const RunPhase* named_peak(const RankRun& rank) {
  const StepPart& part = rank.memory.peak.part;
  for (const RunPhase& row : rank.recorded.phases)
    if (row.name != row.phase && row.phase == to_string(part.phase) && row.step == part.step &&
        row.numbers.allocated_bytes.peak == rank.memory.phases.peak.allocated_bytes.peak)
      return &row;
  return nullptr;
}

const RankRun& largest_rank(const RunReport& report) {
  return *std::max_element(report.ranks.begin(), report.ranks.end(), [](const RankRun& a, const RankRun& b) {
    return a.memory.phases.peak.reserved_bytes.peak < b.memory.phases.peak.reserved_bytes.peak;
  });
}

ProfileReport profile_of(const RunReport& report, const RankRun& rank, const RunCosts& costs) {
  ProfileReport profile;
  profile.model = fmt::format("{}", fmt::join(report.program, " "));
  profile.device = report.device;
  profile.device_title = report.device_title;
  profile.device_memory = rank.recorded.memory;
  profile.module_types = rank.recorded.module_types;
  profile.memory = rank.memory;
  if (const auto found = costs.by_rank.find(rank.rank); found != costs.by_rank.end())
    profile.counts = found->second;
  return profile;
}

Verdict verdict_of(const RunReport& report, const RankRun& rank) {
  Verdict verdict{.device = report.real ? report.device_title : report.device,
                  .reserved = {rank.memory.phases.peak.reserved_bytes.peak},
                  .outside = rank.outside,
                  .memory = rank.recorded.memory};
  if (rank.reserved_since_recovery) {
    verdict.reserved = *rank.reserved_since_recovery;
  } else if (!rank.recorded.out_of_memory.empty()) {
    const RecordedOutOfMemory& failed = rank.recorded.out_of_memory.back();
    verdict.at_least = true;
    verdict.reserved = failed.reserved + failed.requested;
  }
  if (!verdict.at_least) verdict.ended = report.ended;
  verdict.fits = !verdict.at_least && verdict.ended.empty() && verdict.left().count >= 0;
  return verdict;
}

std::string run_text(const RunReport& report, const TextOptions& options, const RunCosts& costs) {
  const RankRun& rank = largest_rank(report);
  const auto title = [&](const std::string& text) { return heading(text, options.colour); };
  std::string text = opening(report, rank, options.colour);
  text += failures(report, rank, options.colour);
  text += other_answers(report);
  text += growth(rank);
  text += beside_training(rank);
  text += fixes(report, rank, options.colour);
  if (report.ranks.size() > 1) {
    text += title("Ranks (peaks)");
    text += rank_table(report);
    text += fmt::format("what follows is of rank {}, device {}\n", rank.rank, rank.recorded.device);
  }
  text += title("Phases");
  text += phase_table(rank.recorded.phases, options.brief ? kMostPhases : 0);
  if (!rank.memory.modules.empty()) {
    text += title("Modules (with what is inside them, of the first step; bytes without rounding)");
    text += modules(report, rank, costs, options);
  }
  if (const auto found = costs.by_rank.find(rank.rank); found != costs.by_rank.end()) {
    text += title("What the first step computes");
    text += costs_table(found->second);
  } else if (!costs.unknown.empty()) {
    text += "\n" + costs.unknown + "\n";
  }
  text += title("Peak");
  text += peak(rank, options);
  text += fragmentation(rank);
  if (!rank.recorded.reads.empty()) {
    text += title("Data that the program read from the device");
    text += reads(rank, options.brief);
  }
  const std::string remarks = notes(report, rank, options.brief);
  return remarks.empty() ? text : text + '\n' + remarks;
}

}  // namespace metaprof
