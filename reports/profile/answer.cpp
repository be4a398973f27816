#include "reports/profile/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"

namespace metaprof {
namespace {

std::string_view in_words(Category category, bool trained) {
  switch (category) {
    case Category::parameter: return "parameters";
    case Category::buffer: return "buffers";
    case Category::input: return "inputs";
    case Category::activation:
      return trained ? "activations that are kept for backward" : "results that the model returns";
    case Category::gradient: return "gradients";
    case Category::optimizer_state: return "the optimizer's state";
    case Category::temporary: return "temporary results";
    case Category::workspace: return "workspaces of libraries";
    case Category::cached_copy: return "copies that autocast keeps";
    case Category::kept: return "what variables keep";
  }
  return "";
}

bool trains(const ProfileReport& report) {
  return std::ranges::none_of(report.options, [](const auto& option) {
    return option.first == "mode" && to_text(option.second) != "train";
  });
}

// " Of the 23.0 GiB alive at the peak the most, 9.2 GiB (40 %), are the optimizer's state."
std::string largest_kind(const PeakMoment& peak, bool trained) {
  if (peak.bytes.count == 0) return "";
  const auto largest = std::ranges::max_element(peak.by_category, {}, &Bytes::count);
  return fmt::format(" Of the {} alive at the peak the most, {} ({:.0f} %), are {}.",
                     human_bytes(peak.bytes.count), human_bytes(largest->count),
                     100.0 * static_cast<double>(largest->count) / static_cast<double>(peak.bytes.count),
                     in_words(static_cast<Category>(largest - peak.by_category.begin()), trained));
}

// Of how many of the steps that were asked for the others are repetitions.
std::string repetition(const ProfileReport& report, const OptionValue& steps) {
  const auto* asked = std::get_if<int64_t>(&steps);
  if (!asked || report.steps_run == 0 || *asked <= report.steps_run) return "";
  return fmt::format(" (all after step {} as that one)", report.steps_run);
}

}  // namespace

std::string options_text(const ProfileReport& report) {
  std::string text;
  const bool trained = trains(report);
  for (const auto& [name, value] : report.options) {
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (const bool* flag = std::get_if<bool>(&value);
        flag && !*flag && !report.as_usual.contains(name) && name != "zero_grad_to_none")
      continue;
    const bool always = name == "precision" || (name == "optimizer" && trained) || name == "steps";
    if ((report.as_usual.contains(name) && !always) || (name == "optimizer" && !trained)) continue;
    const bool exported =
        name == "precision" && report.as_usual.contains(name) && !report.parameter_types.empty();
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : ", ", !trained && name == "steps" ? "forwards" : name,
        exported ? report.parameter_types + " as exported" : shown(to_text(value), kMostCharactersOfName));
    if (name == "steps" && !report.as_usual.contains(name)) text += repetition(report, value);
  }
  return text;
}

std::string answer(const ProfileReport& report) {
  const Verdict verdict = verdict_of(report);
  std::string text = fmt::format("{} of {} needs {}{}", trains(report) ? "A training step" : "A forward",
                                 shown(report.model, kMostCharactersOfName),
                                 verdict.at_least ? "more than " : "", human_bytes(verdict.reserved.count));
  if (verdict.outside.count > 0)
    text += fmt::format(", and the process {} beside it", human_bytes(verdict.outside.count));
  text += fmt::format("; {} has {}", shown(report.device_title, kMostCharactersOfName),
                      human_bytes(verdict.memory.count));
  const int64_t left = verdict.left().count;
  if (verdict.fits)
    text += fmt::format(": {} stay free.", human_bytes(left));
  else
    text += left < 0 && !verdict.at_least ? fmt::format(": {} are missing.", human_bytes(-left)) : ".";
  text += largest_kind(report.memory.peak, trains(report));
  if (const auto& failed = report.memory.phases.out_of_memory)
    text += fmt::format(" It ends in {} of step {}, where {} are asked for.", to_string(failed->part.phase),
                        failed->part.step + 1, human_bytes(failed->requested.count));
  return text;
}

}  // namespace metaprof
