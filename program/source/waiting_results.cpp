#include "program/source/waiting_results.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "program/def_use.h"
#include "program/source/frames.h"

namespace metaprof {
namespace {

// "pow" of "aten::pow.Tensor_Scalar".
std::string_view function_of(std::string_view op) {
  op.remove_prefix(std::min(op.size(), op.find("::") == op.npos ? 0 : op.find("::") + 2));
  return op.substr(0, op.find('.'));
}

class Waiting {
 public:
  Waiting(const Program& program, size_t failed)
      : graph_(program.graph),
        source_(FrameFinder(program).frames_of(program.graph)),
        def_use_(program.graph),
        failed_(failed) {}

  std::vector<size_t> find() {
    std::vector<size_t> found;
    for (size_t node = failed_; node-- > 0;) {
      if (!waits(node)) continue;
      found.push_back(node);
      waiting_.insert(static_cast<int32_t>(node));
    }
    return found;
  }

 private:
  // The node's results have no name, and the statement that made them has not ended.
  bool waits(size_t node) const {
    const CallSite &made = source_.sites[node], &at = source_.sites[failed_];
    const size_t levels = shared(made, at);
    if (levels == 0 || made.statements[levels - 1] != at.statements[levels - 1]) return false;
    if (made.frames.size() == levels && !is_made_by_text(made)) return false;
    for (const Target& target : graph_.nodes[node].targets)
      for (const ValueId value : target.values)
        if (value != kNoValue && !stays_within(value, levels, made)) return false;
    return true;
  }

  static size_t shared(const CallSite& a, const CallSite& b) {
    size_t levels = 0;
    while (levels < a.frames.size() && levels < b.frames.size() && a.frames[levels] == b.frames[levels])
      ++levels;
    return levels;
  }

  // All who take it do so in this statement, and none in a function that is at work: its parameters have names. Who
  // has taken it already waits, too; else that result has a name, and its history keeps this one.
  bool stays_within(ValueId value, size_t levels, const CallSite& made) const {
    const auto users = def_use_.users(value);
    if (users.empty()) return false;
    return std::ranges::all_of(users, [&](int32_t user) {
      const CallSite& taken = source_.sites[static_cast<size_t>(user)];
      const bool has_taken = user < static_cast<int32_t>(failed_);
      return shared(made, taken) >= levels && taken.statements[levels - 1] == made.statements[levels - 1] &&
             shared(taken, source_.sites[failed_]) <= levels && (!has_taken || waiting_.contains(user));
    });
  }

  // The statement's text calls modules and operators alone. Other functions leave no frame in a trace, and their
  // variables have names.
  bool is_made_by_text(const CallSite& site) const {
    const Statement& statement = source_.statements[static_cast<size_t>(site.statements.back())];
    const std::set<std::string_view> operators = operators_of(site);
    const std::string_view code = statement.code;
    for (size_t open = code.find('('); open != code.npos; open = code.find('(', open + 1)) {
      size_t begin = open;
      while (begin > 0 && is_of_name(code[begin - 1])) --begin;
      const std::string_view name = code.substr(begin, open - begin);
      if (name.empty() || name == "return" || code.substr(0, begin).ends_with("math.")) continue;
      if (!operators.contains(name) && std::ranges::find(statement.called, name) == statement.called.end())
        return false;
    }
    return true;
  }

  std::set<std::string_view> operators_of(const CallSite& site) const {
    std::set<std::string_view> names;
    for (size_t node = 0; node < graph_.nodes.size(); ++node)
      if (source_.sites[node].statements == site.statements) names.insert(function_of(graph_.nodes[node].op));
    return names;
  }

  const Graph& graph_;
  const SourceFrames source_;
  const DefUse def_use_;
  const size_t failed_;
  std::set<int32_t> waiting_;  // nodes that were found
};

}  // namespace

std::vector<size_t> waiting_results(const Program& program, size_t failed) {
  if (failed >= program.graph.nodes.size()) return {};
  return Waiting(program, failed).find();
}

}  // namespace metaprof
