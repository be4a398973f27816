#pragma once
// What numbers cannot check, with the reason. An entry that could be checked is a failure of the tests.

#include <fmt/format.h>
#include <fnmatch.h>

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

struct NotChecked {
  std::string_view calls;  ///< shell wildcard over "aten::add.Tensor(f32[2,3] 1)"
  std::string_view reason;
};

/// Entries of a table, and which of them were met.
class Exceptions {
 public:
  explicit Exceptions(std::span<const NotChecked> table) : table_(table), met_(table.size()) {}
  /// The entry that covers a call; null if there is none.
  const NotChecked* find(const std::string& call) {
    for (size_t i = 0; i < table_.size(); ++i) {
      if (fnmatch(std::string(table_[i].calls).c_str(), call.c_str(), 0) != 0) continue;
      met_[i].insert(call.substr(0, call.find('(')));
      return &table_[i];
    }
    return nullptr;
  }
  std::vector<std::string_view> not_met() const {
    std::vector<std::string_view> calls;
    for (size_t i = 0; i < table_.size(); ++i)
      if (met_[i].empty()) calls.push_back(table_[i].calls);
    return calls;
  }
  /// A line per entry: "aten::normal.* (3 operators): why".
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < table_.size(); ++i)
      lines.push_back(
          fmt::format("{} ({} operators): {}", table_[i].calls, met_[i].size(), table_[i].reason));
    return lines;
  }

 private:
  std::span<const NotChecked> table_;
  std::vector<std::set<std::string>> met_;  // names of operators
};

}  // namespace metaprof
