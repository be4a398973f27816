#include "program/pt2/ties.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "program/visit.h"

// Which names are one parameter:
//
// 1. The exporter's note extra/training.json says so.
// 2. Weights with bytes: names whose record, sizes, strides and offset are the same. (Without bytes, all
//    parameters of one dtype share a record, and it tells nothing.)
// 3. Otherwise from use. torch.export gives every name an input, and the graph uses the last-registered one.
//    So an unused parameter is tied if a call of its own module uses the parameter of another module in its
//    place, or if exactly one used parameter that was registered later is like it in last name, dtype, sizes
//    and requires_grad. Any other unused parameter is a parameter that gets no gradient.

namespace metaprof {
namespace {

using Groups = std::vector<std::vector<std::string>>;

std::string_view owner_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}
std::string_view last_of(std::string_view name) { return name.substr(name.rfind('.') + 1); }

class TieFinder {
 public:
  explicit TieFinder(Pt2Context& context) : context_(context), program_(context.program) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const ProgramInput& input = program_.inputs[i];
      if (input.kind != ProgramInput::Kind::parameter) continue;
      parameters_.push_back(static_cast<int>(i));
      by_name_.emplace(input.name, static_cast<int>(i));
      by_value_.emplace(input.value, static_cast<int>(i));
    }
  }

  void from_notes(Json tied) {
    tied.for_each([&](Json names) {
      std::vector<int> group;
      names.for_each([&](Json name) {
        const auto found = by_name_.find(name.string());
        if (found == by_name_.end())
          return context_.warn(
              fmt::format("extra/training.json ties '{}', which is no parameter", name.string()));
        group.push_back(found->second);
      });
      if (std::any_of(group.begin(), group.end(), [&](int i) { return !alike(i, group.front()); }))
        return context_.warn(
            fmt::format("extra/training.json ties parameters of different shapes: {}", names.text()));
      join(group);
    });
  }

  void from_records(const Pt2Weights& weights) {
    std::map<std::string, std::vector<int>> by_record;
    weights.config.for_each_member([&](std::string_view name, Json entry) {
      const auto found = by_name_.find(std::string(name));
      if (found == by_name_.end() || !weights.nonempty.count(entry.at("path_name").string())) return;
      const Json meta = entry.at("tensor_meta");
      std::string key = entry.at("path_name").string();
      for (const char* what : {"sizes", "strides", "storage_offset"}) key += meta.at(what).text();
      by_record[key].push_back(found->second);
      has_record_.insert(found->second);
    });
    for (auto& [record, group] : by_record) {
      std::sort(group.begin(), group.end());
      join(group);
    }
  }

  void from_use() {
    note_uses();
    for (const int parameter : parameters_) {
      if (is_used(parameter) || has_record_.count(parameter)) continue;
      const int partner = partner_of(parameter);
      const std::string& name = program_.inputs[static_cast<size_t>(parameter)].name;
      if (partner < 0) {
        context_.warn(fmt::format("the parameter {} is used by no call: it gets no gradient", name));
        continue;
      }
      join({parameter, partner});
      context_.warn(fmt::format("the parameter {} is used by no call and is taken to be tied to {}", name,
                                program_.inputs[static_cast<size_t>(partner)].name));
    }
  }

  void store() {
    for (const int parameter : parameters_)
      if (const int first = root_of(parameter); first != parameter)
        program_.inputs[static_cast<size_t>(parameter)].tied_to = first;
  }

 private:
  const TensorFacts& facts(int parameter) const {
    const ValueId value = program_.inputs[static_cast<size_t>(parameter)].value;
    return *program_.graph.values[static_cast<size_t>(value)].tensor;
  }
  bool alike(int a, int b) const {
    return facts(a).dtype == facts(b).dtype && facts(a).sizes == facts(b).sizes &&
           facts(a).requires_grad == facts(b).requires_grad;
  }
  bool is_used(int parameter) const { return used_.count(parameter) != 0; }

  // The first-registered parameter of a group stands for it.
  int root_of(int parameter) const {
    for (auto found = roots_.find(parameter); found != roots_.end(); found = roots_.find(parameter))
      parameter = found->second;
    return parameter;
  }
  void join(const std::vector<int>& group) {
    for (size_t i = 1; i < group.size(); ++i) {
      const int a = root_of(group[0]), b = root_of(group[i]);
      if (a != b) roots_[std::max(a, b)] = std::min(a, b);
    }
  }

  void note_uses() {
    for (const GraphNode& node : program_.graph.nodes)
      for_each_argument(node, [&](ValueId value) { note_use(value, node); });
    for (const Operand& output : program_.graph.outputs)
      if (const auto found = by_value_.find(output.value); found != by_value_.end())
        used_.insert(found->second);
  }
  void note_use(ValueId value, const GraphNode& node) {
    const auto found = by_value_.find(value);
    if (found == by_value_.end()) return;
    used_.insert(found->second);
    if (node.modules < 0) return;
    const std::string& path = program_.module_stacks[static_cast<size_t>(node.modules)].back().path;
    if (owner_of(program_.inputs[static_cast<size_t>(found->second)].name) != path)
      foreign_uses_[path].insert(found->second);
  }

  int partner_of(int unused) const {
    const std::string& name = program_.inputs[static_cast<size_t>(unused)].name;
    if (const auto uses = foreign_uses_.find(std::string(owner_of(name))); uses != foreign_uses_.end())
      for (const int candidate : uses->second)
        if (alike(candidate, unused)) return candidate;
    int partner = -1;
    for (const int candidate : used_) {
      if (candidate <= unused || !alike(candidate, unused)) continue;
      if (last_of(program_.inputs[static_cast<size_t>(candidate)].name) != last_of(name)) continue;
      if (partner >= 0) return -1;
      partner = candidate;
    }
    return partner;
  }

  Pt2Context& context_;
  Program& program_;
  std::vector<int> parameters_;  // indices into Program::inputs, in the order of registration
  std::unordered_map<std::string, int> by_name_;
  std::unordered_map<ValueId, int> by_value_;
  std::set<int> has_record_, used_;
  std::map<std::string, std::set<int>> foreign_uses_;  // module → parameters of other modules in its calls
  std::map<int, int> roots_;                           // parameter → an earlier one that it is tied to
};

}  // namespace

void find_ties(const Pt2Weights& weights, Pt2Context& context) {
  TieFinder finder(context);
  if (weights.notes && weights.notes.find("tied")) {
    finder.from_notes(weights.notes.at("tied"));
  } else {
    if (weights.config) finder.from_records(weights);
    finder.from_use();
  }
  finder.store();
}

}  // namespace metaprof
