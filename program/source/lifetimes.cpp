#include "program/source/lifetimes.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "program/def_use.h"
#include "program/visit.h"

namespace metaprof {
namespace {

// "f(" where f stands by itself and is no type: a function of the model's source. Or that function of
// torch.nn.functional which is Python and has variables of its own (q, k, v) beside its call of attention.
bool calls_function(const std::string& code) {
  static const std::set<std::string, std::less<>> kBuiltins = {
      "if",   "not",   "and",   "or",   "in",         "return",  "int",      "float",
      "len",  "max",   "min",   "abs",  "sum",        "str",     "zip",      "set",
      "list", "tuple", "range", "dict", "isinstance", "getattr", "enumerate"};
  for (size_t open = code.find('('); open != std::string::npos; open = code.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 && is_of_name(code[begin - 1])) --begin;
    const std::string_view name(code.data() + begin, open - begin);
    if (name == "multi_head_attention_forward") return true;
    if (begin == open || (begin > 0 && code[begin - 1] == '.')) continue;
    if (!std::isupper(static_cast<unsigned char>(name[0])) && !kBuiltins.contains(name)) return true;
  }
  return false;
}

// "self.half(" where none of the modules that the statement calls has that name: a method.
bool calls_method(const Statement& statement) {
  constexpr std::string_view kSelf = "self.";
  const std::string& code = statement.code;
  for (size_t at = code.find(kSelf); at != std::string::npos; at = code.find(kSelf, at + 1)) {
    size_t end = at + kSelf.size();
    while (end < code.size() && is_of_name(code[end])) ++end;
    if (end == code.size() || code[end] != '(') continue;
    const std::string_view name = std::string_view(code).substr(at + kSelf.size(), end - at - kSelf.size());
    if (std::ranges::find(statement.called, name) == statement.called.end()) return true;
  }
  return false;
}

// `for layer in self.layers: x = layer(x)`: the function that the text names is a module. Those of a list have numbers
// for names.
bool calls_module_by_variable(const Statement& statement) {
  return std::ranges::any_of(statement.called, [&](const std::string& name) {
    const bool is_number = std::isdigit(static_cast<unsigned char>(name[0]));
    return is_number ? statement.code.find('[' + name + ']') == std::string::npos
                     : !contains_word(statement.code, name);
  });
}

// "parts[i] = f(x)"
bool assigns_element(std::string_view code) {
  const size_t open =
      code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
  if (open == std::string_view::npos || open == 0 || code[open] != '[') return false;
  const size_t close = code.find("] = ", open);
  return close != std::string_view::npos && code.find('(', open) > close;
}

// "parts = [f(x)]", "parts += [f(x)]", "parts = {"a": f(x)}"
bool binds_list(std::string_view code) {
  const size_t equals = code.find("= ");
  return equals != std::string_view::npos && equals + 2 < code.size() &&
         (code[equals + 2] == '[' || code[equals + 2] == '{');
}

using Users = std::span<const int32_t>;
using Reason = GuessedLifetime::Reason;

// When a value goes, and why it may be another time.
struct Drop {
  int32_t after = kNoNode;
  std::optional<Reason> guessed = std::nullopt;
};

class Lifetimes {
 public:
  Lifetimes(const Graph& graph, const SourceFrames& source, const Registry& registry,
            const Variables& of_regions)
      : graph_(graph), registry_(registry), source_(source), of_regions_(of_regions), def_use_(graph) {}

  // Per value when it is dropped; kNoNode: it outlives the graph.
  std::vector<Drop> drops() const {
    std::vector<Drop> last(graph_.values.size());
    for (size_t v = 0; v < last.size(); ++v) {
      const auto value = static_cast<ValueId>(v);
      const int producer = def_use_.maker(value);
      if (producer == kNoNode) continue;
      const Users users = def_use_.users(value);
      const auto position = static_cast<size_t>(def_use_.position(value));
      const auto returned = users.empty() ? returned_with_others(producer, position) : std::nullopt;
      last[v] = returned ? Drop{*returned} : drop_of(value, producer, users);
    }
    for (const ValueId input : graph_.inputs)
      if (input != kNoValue) last[size_t(input)] = {};
    for (const Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId value) { last[size_t(value)] = {}; });
    return last;
  }

  // The variable that holds a value when the last call of the graph has returned, in a frame in which all of its calls
  // stand; nothing: none does.
  std::optional<Variable> variable_after(ValueId value) const {
    const int producer = def_use_.maker(value);
    const size_t of_all = levels_of_all();
    if (producer == kNoNode || of_all == 0) return std::nullopt;
    const auto known = of_regions_.find(value);
    if (known != of_regions_.end())
      return known->second.level < of_all ? std::optional(known->second) : std::nullopt;
    const CallSite& site = source_.sites[size_t(producer)];
    const Users users = def_use_.users(value);
    const size_t level = std::min(shared_levels(site, users), of_all) - 1;
    if (level >= of_all) return std::nullopt;
    const int statement = site.statements[level];
    const std::string& name =
        holder_of(source_.statements[size_t(statement)], size_t(def_use_.position(value)));
    const Frame& frame = source_.frames[size_t(site.frames[level])];
    if (name.empty() || binding_after(frame, statement, name)) return std::nullopt;
    if (is_used_within(value, producer, level) && !is_output(value)) return std::nullopt;  // a temporary
    return Variable{level, name};
  }

  // What attributes of the model hold goes when they are bound again: in this run, or in the next one (`keeps`).
  void keep_attributes(std::vector<Drop>& last, std::vector<GraphNode>& nodes) const {
    std::map<Attribute, ValueId> first, latest;
    for (size_t i = 0; i < nodes.size(); ++i) {
      for_each_result(nodes[i], [&](ValueId value) {
        const auto attribute = attribute_of(value, static_cast<int>(i));
        if (!attribute || last[size_t(value)].after == kNoNode) return;
        first.emplace(*attribute, value);
        const auto before = latest.find(*attribute);
        if (before != latest.end()) {
          const int bound = statement_of(static_cast<int>(i), attribute->level).last_node;
          int32_t& after = last[size_t(before->second)].after;
          after = std::max(after, bound);
        }
        latest.insert_or_assign(*attribute, value);
      });
    }
    for (const auto& [attribute, value] : latest) {
      last[size_t(value)] = {};
      nodes[size_t(def_use_.maker(value))].keeps.push_back({value, first.at(attribute)});
    }
  }

 private:
  struct Attribute {
    std::string module, name;  // the module's path, "self.hidden"
    size_t level;              // of the frame that binds it
    bool operator<(const Attribute& other) const {
      return std::tie(module, name) < std::tie(other.module, other.name);
    }
  };

  template <class Visit>
  static void for_each_result(const GraphNode& node, Visit visit) {
    for (const Target& target : node.targets)
      for (const ValueId value : target.values)
        if (value != kNoValue) visit(value);
  }

  const Statement& statement_of(int node, size_t level) const {
    return source_.statements[size_t(source_.sites[size_t(node)].statements[level])];
  }

  std::optional<Attribute> attribute_of(ValueId value, int producer) const {
    const CallSite& site = source_.sites[size_t(producer)];
    const size_t levels = shared_levels(site, def_use_.users(value));
    const auto known = of_regions_.find(value);
    const bool of_region = known != of_regions_.end() && known->second.level < levels;
    if (levels == 0) return std::nullopt;
    const size_t level = of_region ? known->second.level : levels - 1;
    const std::string& name =
        of_region ? known->second.name
                  : holder_of(statement_of(producer, level), size_t(def_use_.position(value)));
    if (!name.starts_with("self.")) return std::nullopt;
    const bool is_temporary = !of_region && is_used_within(value, producer, level);
    if (is_temporary) return std::nullopt;
    return Attribute{source_.frames[size_t(site.frames[level])].module, name, level};
  }

  // All who take the value stand in the statement that makes it.
  bool is_used_within(ValueId value, int producer, size_t level) const {
    const Users users = def_use_.users(value);
    return !users.empty() && std::ranges::all_of(users, [&](int user) {
      return source_.sites[size_t(user)].statements[level] ==
             source_.sites[size_t(producer)].statements[level];
    });
  }

  bool is_output(ValueId value) const {
    bool found = false;
    for (const Operand& output : graph_.outputs)
      for_each_value(output, [&](ValueId each) { found |= each == value; });
    return found;
  }

  // How many levels of their stacks all calls of the graph share.
  size_t levels_of_all() const {
    if (source_.sites.empty()) return 0;
    std::vector<int32_t> all(source_.sites.size());
    std::iota(all.begin(), all.end(), 0);
    return shared_levels(source_.sites.front(), all);
  }

  // The level of the frame that owns a value: the deepest that its producer shares with all its users.
  size_t shared_levels(const CallSite& site, Users users) const {
    size_t levels = site.frames.size();
    for (int user : users) {
      const auto& frames = source_.sites[size_t(user)].frames;
      size_t common = 0;
      while (common < levels && common < frames.size() && frames[common] == site.frames[common]) ++common;
      levels = common;
    }
    return levels;
  }

  Drop drop_of(ValueId value, int producer, Users users) const {
    const CallSite& site = source_.sites[size_t(producer)];
    const auto known = of_regions_.find(value);
    const size_t shared = shared_levels(site, users);
    const bool is_variable = known != of_regions_.end() && known->second.level < shared;
    const size_t levels = is_variable ? known->second.level + 1 : shared;
    int last_use = producer;
    if (levels == 0) {
      for (int user : users) last_use = std::max(last_use, user);
      return {last_use};
    }
    const size_t level = levels - 1;
    // A callee holds what it was passed until it returns.
    bool other_statement = users.empty() || is_variable;
    for (int user : users) {
      const CallSite& at = source_.sites[size_t(user)];
      const int released =
          at.frames.size() > levels ? source_.frames[size_t(at.frames[levels])].last_node : user;
      last_use = std::max(last_use, released);
      other_statement |= at.statements[level] != site.statements[level];
    }
    const Statement& statement = source_.statements[size_t(site.statements[level])];
    if (!other_statement && calls_function(statement.code) &&
        (is_factor(users, site) || waits_with_products(producer, site, users)))
      return {statement.last_node};
    const std::string& name =
        is_variable ? known->second.name : holder_of(statement, size_t(def_use_.position(value)));
    if (!other_statement || name.empty())
      return {last_use,
              other_statement ? doubt_of_unnamed(statement) : doubt_of_temporary(statement, last_use)};
    const int end = end_of_variable(site, level, name, users, last_use);
    return {end, doubt_of_variable(statement, end, level, users)};
  }

  // Not of statements of libraries: what they say was compared with runs (docs/evidence/evidence.md).
  static std::optional<Reason> doubt_of_line(const Statement& statement) {
    if (statement.of_library) return std::nullopt;
    if (statement.code.find(';') != std::string::npos) return Reason::statements;
    if (statement.code.find(":=") != std::string::npos) return Reason::expression;
    return std::nullopt;
  }
  static std::optional<Reason> doubt_of_unnamed(const Statement& statement) {
    if (!statement.of_library && assigns_element(statement.code)) return Reason::element;
    return doubt_of_line(statement);
  }
  static std::optional<Reason> doubt_of_temporary(const Statement& statement, int last_use) {
    if (const auto doubt = doubt_of_line(statement)) return doubt;
    if (statement.of_library || last_use >= statement.last_node) return std::nullopt;
    const bool calls =
        (calls_function(statement.code) && !calls_module_by_variable(statement)) || calls_method(statement);
    return calls ? std::optional(Reason::function) : std::nullopt;
  }
  // A variable that is held past the last statement that uses it.
  std::optional<Reason> doubt_of_variable(const Statement& statement, int end, size_t level,
                                          Users users) const {
    if (const auto doubt = doubt_of_line(statement)) return doubt;
    if (statement.of_library) return std::nullopt;
    int used = statement.last_node;
    for (int user : users) used = std::max(used, statement_of(user, level).last_node);
    if (used >= end) return std::nullopt;
    const bool is_list = !statement.container.empty() || binds_list(statement.code);
    return is_list ? Reason::list : Reason::deleted;
  }

  int end_of_variable(const CallSite& site, size_t level, const std::string& name, Users users,
                      int last_use) const {
    const Frame& frame = source_.frames[size_t(site.frames[level])];
    int bound_again = rebound(frame, site.statements[level], name);
    // `x = f(x)` where f writes to x: it is x that comes back.
    while ((bound_again < last_use && is_written(users, level, bound_again)) ||
           is_handed_through(users, level, bound_again, name)) {
      const int next = rebound(frame, source_.sites[size_t(bound_again)].statements[level], name);
      if (next == bound_again) break;
      bound_again = next;
    }
    if (bound_again >= last_use) return bound_again;
    return users.empty() ? std::max(bound_again, last_use) : frame.last_node;
  }

  // `x, y = f(x, y)` where no call within f takes x: f returns it as it is.
  bool is_handed_through(Users users, size_t level, int node, const std::string& name) const {
    const CallSite& site = source_.sites[size_t(node)];
    if (site.statements.size() <= level) return false;
    const Statement& statement = source_.statements[size_t(site.statements[level])];
    const size_t right = statement.code.find(" = ");
    if (statement.names.size() < 2 || right == std::string::npos ||
        std::ranges::find(statement.names, name) == statement.names.end() ||
        !contains_word(std::string_view(statement.code).substr(right), name))
      return false;
    return std::ranges::none_of(users, [&](int user) {
      return source_.sites[size_t(user)].statements[level] == site.statements[level];
    });
  }

  // The variable that holds a statement's value; empty: none does.
  static const std::string& holder_of(const Statement& statement, size_t position) {
    if (statement.names.empty()) return statement.container;
    return statement.names[position < statement.names.size() ? position : 0];
  }

  // A function that is no module leaves no frame of its own, so its variables cannot be seen. Tensors that a
  // product of matrices takes there are variables by custom (q, k, v); what pointwise operators take is not.
  // Products are the operators that autocast runs in lower precision.
  bool is_factor(Users users, const CallSite& site) const {
    for (int user : users) {
      const GraphNode& node = graph_.nodes[size_t(user)];
      if (source_.sites[size_t(user)].frames != site.frames) continue;
      const Operator* op = registry_.find(node.op);
      if (!op) continue;
      if (is_product(user)) return true;
      if (!op->record.facts.view) continue;
      for (const Target& target : node.targets)
        for (ValueId seen : target.values)
          if (seen != kNoValue && is_factor(def_use_.users(seen), site)) return true;
    }
    return false;
  }

  // One of these calls, or one that takes a view that they make, writes in place within the statement in
  // which `node` stands.
  bool is_written(Users users, size_t level, int node) const {
    const auto statement_of = [&](int call) {
      const CallSite& site = source_.sites[size_t(call)];
      return site.statements.size() > level ? site.statements[level] : -1;
    };
    for (int user : users) {
      const GraphNode& call = graph_.nodes[size_t(user)];
      const Operator* op = registry_.find(call.op);
      if (!op || statement_of(user) != statement_of(node)) continue;
      if (!op->schema.arguments.empty() && op->schema.arguments[0].written) return true;
      if (!op->record.facts.view) continue;
      for (const Target& target : call.targets)
        for (ValueId seen : target.values)
          if (seen != kNoValue && is_written(def_use_.users(seen), level, node)) return true;
    }
    return false;
  }

  bool is_product(int node) const {
    const Operator* op = registry_.find(graph_.nodes[size_t(node)].op);
    return op && op->record.facts.product;
  }

  // Results of products that are there at the same time have names: while one waits to be used another is
  // computed. One that the next call takes alone does not wait.
  bool waits_with_products(int producer, const CallSite& site, Users users) const {
    if (!is_product(producer) || users.empty()) return false;
    const int first_use = *std::min_element(users.begin(), users.end());
    if (first_use == producer + 1 && takes_one_value(first_use)) return false;
    for (int node = first_use - 1; node >= 0 && stands_with(node, site); --node) {
      if (node == producer || !is_product(node)) continue;
      if (node > producer || first_use_of(node) > producer) return true;
    }
    return false;
  }
  bool takes_one_value(int node) const {
    int values = 0;
    for_each_argument(graph_.nodes[size_t(node)], [&](ValueId) { ++values; });
    return values == 1;
  }
  bool stands_with(int node, const CallSite& site) const {
    return source_.sites[size_t(node)].frames == site.frames &&
           source_.sites[size_t(node)].statements == site.statements;
  }
  int first_use_of(int node) const {
    int first = static_cast<int>(graph_.nodes.size());
    for (const Target& target : graph_.nodes[size_t(node)].targets)
      for (ValueId value : target.values)
        if (value != kNoValue)
          for (int user : def_use_.users(value)) first = std::min(first, user);
    return first;
  }

  // A tuple that is bound to one name and whose elements are used outside the function was returned as a
  // whole (`result = _VF.lstm(…)`, then `out, _ = self.rnn(x)` in the caller). An element that nobody uses is
  // held by the name that the caller gave it; nothing: it was not returned so.
  std::optional<int> returned_with_others(int producer, size_t position) const {
    const GraphNode& node = graph_.nodes[size_t(producer)];
    const CallSite& site = source_.sites[size_t(producer)];
    if (node.targets.size() < 2 || site.frames.size() < 2) return std::nullopt;
    if (source_.statements[size_t(site.statements.back())].names.size() != 1) return std::nullopt;
    size_t levels = site.frames.size();
    for (const Target& target : node.targets)
      for (ValueId other : target.values)
        if (other != kNoValue) levels = std::min(levels, shared_levels(site, def_use_.users(other)));
    if (levels == 0 || levels == site.frames.size()) return std::nullopt;
    const Statement& statement = source_.statements[size_t(site.statements[levels - 1])];
    if (statement.names.size() < 2) return source_.frames[size_t(site.frames[levels])].last_node;
    const std::string& name = statement.names[position == 0 ? 0 : 1];
    return rebound(source_.frames[size_t(site.frames[levels - 1])], site.statements[levels - 1], name);
  }

  // The last node of the next statement of the frame that binds this name.
  std::optional<int> binding_after(const Frame& frame, int statement, const std::string& name) const {
    for (int later : frame.statements) {
      if (later <= statement) continue;
      const Statement& other = source_.statements[size_t(later)];
      for (const auto* names : {&other.names, &other.names_in_region})
        if (std::ranges::find(*names, name) != names->end()) return other.last_node;
    }
    return std::nullopt;
  }
  int rebound(const Frame& frame, int statement, const std::string& name) const {
    return binding_after(frame, statement, name).value_or(frame.last_node);
  }

  const Graph& graph_;
  const Registry& registry_;
  const SourceFrames& source_;
  const Variables& of_regions_;
  const DefUse def_use_;
};

}  // namespace

void find_drops(Graph& graph, const SourceFrames& source, const Registry& registry,
                const Variables& of_regions) {
  const Lifetimes lifetimes(graph, source, registry, of_regions);
  std::vector<Drop> last = lifetimes.drops();
  lifetimes.keep_attributes(last, graph.nodes);
  graph.guesses.clear();
  for (size_t v = 0; v < last.size(); ++v) {
    if (last[v].after == kNoNode) continue;
    const auto value = static_cast<ValueId>(v);
    graph.nodes[size_t(last[v].after)].drops.push_back(value);
    if (last[v].guessed) graph.guesses.push_back({value, *last[v].guessed});
  }
}

Variables variables_after(const Graph& region, const SourceFrames& source, const Registry& registry,
                          const Variables& of_regions) {
  const Lifetimes lifetimes(region, source, registry, of_regions);
  Variables found;
  for (size_t v = 0; v < region.values.size(); ++v)
    if (auto variable = lifetimes.variable_after(static_cast<ValueId>(v)))
      found.emplace(static_cast<ValueId>(v), *std::move(variable));
  return found;
}

}  // namespace metaprof
