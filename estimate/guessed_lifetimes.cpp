#include "estimate/guessed_lifetimes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace metaprof {
namespace {

std::string_view guess_text(GuessedLifetime::Reason reason) {
  switch (reason) {
    case GuessedLifetime::Reason::function:
      return "a function or method was called, whose variables are not in the file (metaprof.export writes "
             "them)";
    case GuessedLifetime::Reason::statements: return "several statements stand in a line";
    case GuessedLifetime::Reason::expression: return "an expression binds a name (:=)";
    case GuessedLifetime::Reason::element: return "an element was assigned";
    case GuessedLifetime::Reason::list: return "a list may have let it go";
    case GuessedLifetime::Reason::deleted: return "a variable may have been deleted";
  }
  return "";
}

// The results of the program's calls in the first forward: per node of the program its outermost call that has results.
class NodeResults {
 public:
  explicit NodeResults(const Trace& trace) : trace_(trace) {
    bool in_forward = false;
    uint32_t node = 0;
    for (const Event& event : trace.events) {
      if (event.kind == Event::Kind::phase) {
        if (in_forward) break;
        in_forward = static_cast<Phase>(event.detail) == Phase::forward;
      }
      if (event.kind == Event::Kind::save) kept_.insert(event.id);
      if (event.kind != Event::Kind::call || !in_forward) continue;
      if (event.value > 0) node = static_cast<uint32_t>(event.value);
      // The last one at the lowest depth that has results: autocast's conversions come before it.
      if (node == 0 || trace.calls[event.id].outputs == 0) continue;
      const auto [at, is_first] = calls_.emplace(node, event.id);
      if (!is_first && trace.calls[event.id].depth <= trace.calls[at->second].depth) at->second = event.id;
    }
  }

  // 0: there is none.
  uint32_t storage(size_t node, size_t position) const {
    const auto found = calls_.find(static_cast<uint32_t>(node) + 1);
    if (found == calls_.end()) return 0;
    const CallRecord& call = trace_.calls[found->second];
    if (position >= call.outputs) return 0;
    return trace_.tensors[call.first_tensor + call.inputs + static_cast<uint32_t>(position)].storage;
  }
  bool is_kept(uint32_t storage) const { return kept_.contains(storage); }

 private:
  const Trace& trace_;
  std::map<uint32_t, uint32_t> calls_;  // index into calls by 1 + node
  std::set<uint32_t> kept_;             // for backward
};

}  // namespace

std::vector<GuessedRow> guessed_lifetimes(const Program& program, const Trace& trace, Device device) {
  if (program.graph.guesses.empty()) return {};
  std::map<ValueId, GuessedLifetime::Reason> guesses;
  for (const GuessedLifetime& guess : program.graph.guesses) guesses.emplace(guess.value, guess.reason);
  const NodeResults results(trace);
  std::map<GuessedLifetime::Reason, GuessedRow> rows;
  std::set<uint32_t> seen;
  const auto count = [&](uint32_t storage, GuessedLifetime::Reason reason) {
    const StorageRecord& record = trace.storages[storage];
    if (storage == 0 || record.device != device || record.category != Category::activation) return;
    if (results.is_kept(storage) || !seen.insert(storage).second) return;
    GuessedRow& row = rows[reason];
    row.why = guess_text(reason);
    ++row.tensors;
    row.bytes += record.bytes;
  };
  for (size_t node = 0; node < program.graph.nodes.size(); ++node) {
    size_t position = 0;
    for (const Target& target : program.graph.nodes[node].targets)
      for (const ValueId value : target.values) {
        const auto guess = guesses.find(value);
        if (guess != guesses.end()) count(results.storage(node, position), guess->second);
        ++position;
      }
  }
  std::vector<GuessedRow> sorted;
  sorted.reserve(rows.size());
  for (auto& [reason, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::greater(), [](const GuessedRow& row) { return row.bytes.count; });
  return sorted;
}

}  // namespace metaprof
