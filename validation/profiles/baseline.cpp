#include "validation/profiles/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"
#include "meta/trace/module_path.h"
#include "step/options_json.h"

namespace metaprof {
namespace {

// No device has more memory, and no step more FLOPs: what is compared and added up stays in range.
constexpr int64_t kMostBytes = int64_t{1} << 50, kMostFlops = int64_t{1} << 60;

int64_t at_most(const Member& member, int64_t most) {
  const int64_t count = member.count();
  if (count > most) member.reject(fmt::format("at most {}", most));
  return count;
}

int64_t bytes_of(const Member& member) { return at_most(member, kMostBytes); }

RunOptions options_of(const Member& json, const std::string& device) {
  if (json.empty())
    fail("{}: is empty: a report of a trace does not say how its steps were run", json.where());
  RunOptions options;
  for (const RunOption& option : run_options())
    if (!option.added_later && option.name != "device" && option.value(options) != OptionValue())
      (void)json.at(std::string(option.name));
  options.context = "none";  // earlier reports counted nothing
  read_options(json, options);
  options.device = device;
  return options;
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
  std::map<std::string, int64_t> saved_with_inner;
  json.at("modules").for_each(
      [&](const Member& row) { saved_with_inner[row.at("path").text()] = bytes_of(row.at("saved_bytes")); });
  figures.saved_by_module = without_inner_modules(saved_with_inner);
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

std::map<std::string, int64_t> without_inner_modules(const std::map<std::string, int64_t>& whole) {
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

Baseline baseline_of(const ProfileFile& report) {
  const Member root = report.root();
  return {.file = report.name(),
          .model = root.at("model").text(),
          .device_memory = {bytes_of(root.at("device_memory"))},
          .options = options_of(root.at("options"), root.at("device").text()),
          .figures = figures_of(root)};
}

BaselineResult compare(const Baseline& before, const std::string& model_now, const BaselineFigures& now) {
  const BaselineFigures& old = before.figures;
  using Figure = BaselineRow::Figure;
  return {.file = before.file,
          .model_before = before.model,
          .model_after = model_now,
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
