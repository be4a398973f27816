#include "validation/profiles/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/formats/text_cursor.h"

namespace metaprof {
namespace {

// Whole numbers by their place. Elements of a list go by what identifies them.
class Figures {
 public:
  explicit Figures(const Json& report) {
    for (const char* part :
         {"parameters", "buffers", "flops", "flops_all", "saved", "phases", "peak", "modules"})
      if (const Json value = report.find(part)) add(part, value);
  }

  std::optional<int64_t> at(const std::string& place) const {
    const auto found = values_.find(place);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<std::string>& places() const { return order_; }

 private:
  static std::string key_of(const Json& element, size_t index) {
    if (const Json phase = element.find("phase")) {
      const Json step = element.find("step"), micro = element.find("micro");
      return fmt::format("{}{}{}{}{}", phase.string(), step ? " " : "", step ? step.text() : "",
                         micro ? "." : "", micro ? micro.text() : "");
    }
    for (const char* name : {"node", "path"}) {
      const Json key = element.find(name);
      if (key && key.is_string()) return key.string().empty() ? "(root)" : key.string();
    }
    return std::to_string(index);
  }

  void add(const std::string& place, const Json& json) {
    if (json.type() == Json::Type::number) {
      const auto number = whole_number(json.text());
      if (number && values_.emplace(place, *number).second) order_.push_back(place);
    } else if (json.is_object()) {
      json.for_each_member([&](std::string_view key, const Json& value) {
        // The largest storages, depths and numbers of steps are no figures of the step.
        if (key != "largest" && key != "depth" && key != "step" && key != "micro")
          add(fmt::format("{}.{}", place, key), value);
      });
    } else if (json.is_list()) {
      size_t index = 0;
      json.for_each([&](const Json& element) {
        if (element.is_object()) add(fmt::format("{}.{}", place, key_of(element, index)), element);
        ++index;
      });
    }
  }

  std::vector<std::string> order_;
  std::map<std::string, int64_t> values_;
};

using Options = std::vector<std::pair<std::string, std::string>>;

// As they are shown, in the order of the report: model, device, how its steps were run.
Options options_of(const Json& report) {
  Options options;
  const auto add = [&](std::string_view name, const Json& value) {
    const bool none = !value || value.is_null();
    options.emplace_back(name, none ? "none" : value.is_string() ? value.string() : value.text());
  };
  add("model", report.find("model"));
  add("device", report.find("device"));
  if (const Json members = report.find("options")) members.for_each_member(add);
  return options;
}

std::string value_of(const Options& options, const std::string& name) {
  const auto found = std::ranges::find(options, name, &Options::value_type::first);
  return found == options.end() ? "none" : found->second;
}

}  // namespace

ProfileDiff diff_profiles(const ProfileFile& before, const ProfileFile& after) {
  const Json old_report = before.root().json(), new_report = after.root().json();
  ProfileDiff diff{.before = before.name(), .after = after.name(), .options = {}, .rows = {}};
  const Options old_options = options_of(old_report), new_options = options_of(new_report);
  const auto add_option = [&](const std::string& name) {
    const std::string a = value_of(old_options, name), b = value_of(new_options, name);
    if (a != b) diff.options.push_back(fmt::format("{}: {} → {}", name, a, b));
  };
  for (const auto& [name, value] : old_options) add_option(name);
  for (const auto& [name, value] : new_options)
    if (std::ranges::find(old_options, name, &Options::value_type::first) == old_options.end())
      add_option(name);
  const Figures old_figures(old_report), new_figures(new_report);
  for (const std::string& place : old_figures.places()) {
    const DiffRow row{place, old_figures.at(place), new_figures.at(place)};
    if (row.before != row.after) diff.rows.push_back(row);
  }
  for (const std::string& place : new_figures.places())
    if (!old_figures.at(place)) diff.rows.push_back({place, std::nullopt, new_figures.at(place)});
  return diff;
}

}  // namespace metaprof
