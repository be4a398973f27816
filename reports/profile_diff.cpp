#include "reports/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "reports/format.h"
#include "reports/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json read(const std::string& name, const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) fail("{}: is no JSON, or was cut off", name);
  if (!json.is_object() || json.value("schema", "") != "metaprof.profile")
    fail("{}: is no report of metaprof profile --json", name);
  const Json version = json.contains("schema_version") ? json["schema_version"] : Json();
  if (version != 1) fail("{}: schema_version {} is not known; this program compares 1", name, version.dump());
  return json;
}

// Whole numbers by their place. Elements of a list go by what identifies them.
class Figures {
 public:
  explicit Figures(const Json& report) {
    for (const char* part :
         {"parameters", "buffers", "flops", "flops_all", "saved", "phases", "peak", "modules"})
      if (report.contains(part)) add(part, report[part]);
  }

  std::vector<std::string> order;
  std::map<std::string, int64_t> values;

 private:
  static std::string key_of(const Json& element, size_t index) {
    if (element.contains("phase"))
      return fmt::format("{}{}{}", element["phase"].get<std::string>(),
                         element.contains("step") ? " " + element["step"].dump() : "",
                         element.contains("micro") ? "." + element["micro"].dump() : "");
    for (const char* name : {"node", "path"})
      if (element.contains(name) && element[name].is_string()) {
        const std::string key = element[name].get<std::string>();
        return key.empty() ? "(root)" : key;
      }
    return std::to_string(index);
  }

  void add(const std::string& place, const Json& json) {
    if (json.is_number_integer()) {
      if (values.emplace(place, json.get<int64_t>()).second) order.push_back(place);
    } else if (json.is_object()) {
      for (const auto& [key, value] : json.items())
        // The largest storages, depths and numbers of steps are no figures of the step.
        if (key != "largest" && key != "depth" && key != "step" && key != "micro")
          add(fmt::format("{}.{}", place, key), value);
    } else if (json.is_array()) {
      for (size_t i = 0; i < json.size(); ++i)
        if (json[i].is_object()) add(fmt::format("{}.{}", place, key_of(json[i], i)), json[i]);
    }
  }
};

std::string shown(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void compare_options(const Json& before, const Json& after, std::vector<std::string>& options) {
  const auto compare = [&](const std::string& name, const Json& a, const Json& b) {
    if (a != b) options.push_back(fmt::format("{}: {} → {}", name, shown(a), shown(b)));
  };
  compare("model", before.value("model", Json()), after.value("model", Json()));
  compare("device", before.value("device", Json()), after.value("device", Json()));
  const Json a = before.value("options", Json::object()), b = after.value("options", Json::object());
  for (const auto& [name, value] : a.items()) compare(name, value, b.value(name, Json()));
  for (const auto& [name, value] : b.items())
    if (!a.contains(name)) compare(name, Json(), value);
}

int64_t change_of(const DiffRow& row) { return row.after.value_or(0) - row.before.value_or(0); }

bool is_bytes(const DiffRow& row) { return row.figure.find("bytes") != std::string::npos; }

// A total, and no element of a list.
bool is_total(const DiffRow& row) {
  for (const char* list : {".by_op", ".by_module", ".by_node", "phases.", "modules."})
    if (row.figure.find(list) != std::string::npos) return false;
  return true;
}

// The totals, then those of the rest that changed most: bytes before anything else.
std::vector<DiffRow> most_telling(std::vector<DiffRow> rows, size_t others) {
  const auto end_of_totals = std::stable_partition(rows.begin(), rows.end(), is_total);
  std::stable_sort(end_of_totals, rows.end(), [](const DiffRow& a, const DiffRow& b) {
    if (is_bytes(a) != is_bytes(b)) return is_bytes(a);
    return std::abs(change_of(a)) > std::abs(change_of(b));
  });
  rows.resize(std::min(rows.size(), static_cast<size_t>(end_of_totals - rows.begin()) + others));
  return rows;
}

std::string number(const DiffRow& row, const std::optional<int64_t>& value) {
  if (!value) return "-";
  return is_bytes(row) ? human_bytes(*value) : grouped(*value);
}

}  // namespace

ProfileDiff diff_profiles(const std::string& before_name, const std::string& before_text,
                          const std::string& after_name, const std::string& after_text) {
  const Json before = read(before_name, before_text), after = read(after_name, after_text);
  ProfileDiff diff{.before = before_name, .after = after_name, .options = {}, .rows = {}};
  compare_options(before, after, diff.options);
  const Figures old_figures(before), new_figures(after);
  const auto in = [](const Figures& figures, const std::string& place) -> std::optional<int64_t> {
    const auto found = figures.values.find(place);
    return found == figures.values.end() ? std::nullopt : std::optional(found->second);
  };
  for (const std::string& place : old_figures.order) {
    const DiffRow row{place, in(old_figures, place), in(new_figures, place)};
    if (row.before != row.after) diff.rows.push_back(row);
  }
  for (const std::string& place : new_figures.order)
    if (!old_figures.values.contains(place))
      diff.rows.push_back({place, std::nullopt, in(new_figures, place)});
  return diff;
}

std::string diff_text(const ProfileDiff& diff, int top) {
  std::string text;
  for (const std::string& option : diff.options) text += option + "\n";
  if (diff.rows.empty()) return text + "no figure differs\n";
  const std::vector<DiffRow> rows = top < 0 ? diff.rows : most_telling(diff.rows, static_cast<size_t>(top));
  TextTable table;
  table.column("figure", TextTable::Align::left);
  for (const char* title : {"before", "after", "change", "share"}) table.column(title);
  for (const DiffRow& row : rows) {
    const int64_t change = change_of(row);
    const bool share = row.before && row.after && *row.before != 0;
    table.row({row.figure, number(row, row.before), number(row, row.after),
               (change > 0 ? "+" : "-") + number(row, std::abs(change)),
               share ? fmt::format("{:+.1f} %",
                                   100.0 * static_cast<double>(change) / static_cast<double>(*row.before))
                     : ""});
  }
  text += (text.empty() ? "" : "\n") + table.text();
  if (rows.size() < diff.rows.size())
    text += fmt::format("… and {} more (--top -1 shows all)\n", diff.rows.size() - rows.size());
  return text;
}

std::string diff_json(const ProfileDiff& diff) {
  const auto or_null = [](const std::optional<int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json rows = Json::array();
  for (const DiffRow& row : diff.rows)
    rows.push_back({{"figure", row.figure}, {"before", or_null(row.before)}, {"after", or_null(row.after)}});
  const Json json = {{"schema", "metaprof.diff"}, {"schema_version", 1},     {"before", diff.before},
                     {"after", diff.after},       {"options", diff.options}, {"rows", rows}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace metaprof
