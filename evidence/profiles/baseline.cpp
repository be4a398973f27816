#include "evidence/profiles/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

int count_below(const Member& member, int64_t most) {
  const int64_t count = member.count();
  if (count < 1 || count > most) member.reject(fmt::format("1 to {}", most));
  return static_cast<int>(count);
}

// No device has more memory, and no step more FLOPs: what is compared and added up stays in range.
constexpr int64_t kMostBytes = int64_t{1} << 50, kMostFlops = int64_t{1} << 60;

int64_t at_most(const Member& member, int64_t most) {
  const int64_t count = member.count();
  if (count > most) member.reject(fmt::format("at most {}", most));
  return count;
}

int64_t bytes_of(const Member& member) { return at_most(member, kMostBytes); }

BaselineOptions options_of(const Member& json) {
  if (json.empty())
    fail("{}: is empty: a report of a trace does not say how its steps were run", json.where());
  BaselineOptions options;
  StepOptions& step = options.step;
  step.precision = json.at("precision").text();
  step.optimizer = json.at("optimizer").text();
  step.optimizer_impl = json.at("optimizer_impl").text();
  step.steps = count_below(json.at("steps"), 1000);
  step.accumulate = count_below(json.at("accumulate"), 1000);
  step.clip_norm = json.optional_real("clip_norm");
  step.clip_value = json.optional_real("clip_value");
  step.zero_grad_to_none = json.at("zero_grad_to_none").boolean();
  step.channels_last = json.at("channels_last").boolean();
  step.checkpoint = json.optional_text("checkpoint").value_or("");
  step.checkpoint_reentrant = json.at("checkpoint_reentrant").boolean();
  step.mode = json.at("mode").text();
  if (const auto batch = json.find("batch")) options.batch = count_below(*batch, 1 << 30);
  if (const auto sequence = json.find("sequence")) options.sequence = count_below(*sequence, 1 << 30);
  std::istringstream settings(json.optional_text("set").value_or(""));
  for (std::string setting; settings >> setting;) options.settings.push_back(setting);
  options.alloc_conf = json.optional_text("alloc_conf").value_or("");
  options.workspaces = json.at("workspaces").text();
  return options;
}

// A module's own: the report's rows hold the modules within.
std::map<std::string, int64_t> saved_by_module(const Member& rows) {
  std::map<std::string, int64_t> whole;
  rows.for_each([&](const Member& row) { whole[row.at("path").text()] = bytes_of(row.at("saved_bytes")); });
  std::map<std::string, int64_t> own = whole;
  for (const auto& [path, bytes] : whole) {
    for (std::string_view above = path; !above.empty();) {
      above = parent_path(above);
      if (const auto found = own.find(std::string(above)); found != own.end()) {
        found->second -= bytes;
        break;
      }
    }
  }
  if (auto root = own.extract("")) {
    root.key() = "(root)";
    own.insert(std::move(root));
  }
  return own;
}

BaselineFigures figures_of(const Member& json) {
  BaselineFigures figures;
  const Member peak = json.at("peak"), saved = json.at("saved"), flops = json.at("flops");
  figures.allocated = bytes_of(peak.at("allocated_bytes"));
  figures.requested = bytes_of(peak.at("requested_bytes"));
  figures.reserved = bytes_of(peak.at("reserved_bytes"));
  figures.saved = bytes_of(saved.at("bytes"));
  for (const char* phase : {"forward", "backward", "recompute", "optimizer"})
    figures.flops += at_most(flops.at(phase), kMostFlops);
  figures.out_of_memory = json.find("out_of_memory").has_value();
  figures.saved_by_module = saved_by_module(json.at("modules"));
  saved.at("by_node").for_each(
      [&](const Member& row) { figures.saved_by_node[row.at("node").text()] += bytes_of(row.at("bytes")); });
  peak.at("by_category").for_each_member([&](const std::string& category, const Member& bytes) {
    figures.peak_by_category[category] = bytes_of(bytes);
  });
  figures.peak_op = peak.optional_text("op").value_or("");
  figures.peak_module = peak.optional_text("module").value_or("");
  return figures;
}

std::optional<BytesChange> largest_change(const std::map<std::string, int64_t>& before,
                                          const std::map<std::string, int64_t>& after) {
  BytesChange largest;
  const auto bytes_in = [](const std::map<std::string, int64_t>& map, const std::string& name) {
    const auto found = map.find(name);
    return found == map.end() ? 0 : found->second;
  };
  const auto look_at = [&](const std::string& name) {
    const BytesChange change{name, bytes_in(before, name), bytes_in(after, name)};
    if (std::abs(change.after - change.before) > std::abs(largest.after - largest.before)) largest = change;
  };
  for (const auto& [name, bytes] : before) look_at(name);
  for (const auto& [name, bytes] : after)
    if (!before.contains(name)) look_at(name);
  return largest.before == largest.after ? std::nullopt : std::optional(largest);
}

}  // namespace

Baseline baseline_of(const ProfileFile& report) {
  const Member root = report.root();
  return {.file = report.name(),
          .model = root.at("model").text(),
          .device = root.at("device").text(),
          .device_memory = {bytes_of(root.at("device_memory"))},
          .options = options_of(root.at("options")),
          .figures = figures_of(root)};
}

BaselineResult compare(const Baseline& before, const Baseline& after) {
  const BaselineFigures &old = before.figures, &now = after.figures;
  using Figure = BaselineRow::Figure;
  return {.file = before.file,
          .model_before = before.model,
          .model_after = after.model,
          .rows = {{Figure::allocated, old.allocated, now.allocated},
                   {Figure::requested, old.requested, now.requested},
                   {Figure::reserved, old.reserved, now.reserved},
                   {Figure::saved, old.saved, now.saved},
                   {Figure::flops, old.flops, now.flops}},
          .saved_module = largest_change(old.saved_by_module, now.saved_by_module),
          .saved_node = largest_change(old.saved_by_node, now.saved_by_node),
          .peak_category = largest_change(old.peak_by_category, now.peak_by_category),
          .peak_op = now.peak_op,
          .peak_module = now.peak_module,
          .out_of_memory_since = now.out_of_memory && !old.out_of_memory};
}

}  // namespace metaprof
