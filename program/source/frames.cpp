#include "program/source/frames.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace metaprof {
namespace {

// "torchvision/models/alexnet.py", ".../site-packages/torch/nn/modules/linear.py"
bool is_of_library(std::string_view file) {
  constexpr std::string_view kLibraries[] = {"torch/", "torchvision/", "transformers/", "timm/"};
  return std::any_of(std::begin(kLibraries), std::end(kLibraries), [&](std::string_view folder) {
    const size_t at = file.rfind(folder);
    return at != std::string_view::npos && (at == 0 || file[at - 1] == '/');
  });
}

int open_brackets(const std::string& code) {
  int depth = 0;
  for (char c : code) {
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
  }
  return depth;
}

}  // namespace

// The first line of the statement that a line belongs to: a line without an assignment after one that leaves
// a bracket open goes on with it.
class FrameFinder::StatementLines {
 public:
  struct Line {
    int first;
    const std::string* code;         // of the first line
    const void* function;            // the same one for all lines of a function
    std::vector<std::string> names;  // that the first line binds
    std::string container;           // to which it appends
  };

  explicit StatementLines(const Program& program) {
    for (const auto& stack : program.source_stacks) {
      std::vector<const Line*>& lines = by_stack_.emplace_back();
      for (const SourceLine& line : stack) {
        auto& function = functions_[{line.file, line.function}];
        const auto [place, is_new] = function.try_emplace(line.line);
        if (is_new)
          place->second = {line.line, &line.code, &function, bound_names(line.code), appended_to(line.code)};
        lines.push_back(&place->second);
      }
    }
    for (auto& [name, lines] : functions_) {
      const Line* open = nullptr;
      for (auto& [number, line] : lines) {
        if (line.code->starts_with("return") || !line.names.empty()) {
          open = open_brackets(*line.code) > 0 ? &line : nullptr;
        } else if (open) {
          line = *open;
        }
      }
    }
  }
  // Of a stack's lines, outermost first. `stack`: index into the program's stacks.
  const std::vector<const Line*>& of_stack(size_t stack) const { return by_stack_[stack]; }

 private:
  std::map<std::pair<std::string_view, std::string_view>, std::map<int, Line>> functions_;
  std::vector<std::vector<const Line*>> by_stack_;
};

// Follows the nodes in order and tells the frames and statements they run in apart.
class FrameFinder::Unwinder {
 public:
  Unwinder(const Program& program, const Graph& graph, const StatementLines& lines)
      : program_(program), graph_(graph), lines_(lines) {}

  SourceFrames run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) find_site(static_cast<int>(i));
    return std::move(found_);
  }

 private:
  using Line = StatementLines::Line;
  struct Level {
    const SourceLine* source;
    const void* function;
    std::string_view key;  // of the module whose forward this is
    int frame, statement;
    std::map<std::string_view, int64_t> calls = {};  // made by the line itself, by name
  };

  void find_site(int node) {
    const GraphNode& call = stack_holder(graph_.nodes[size_t(node)]);
    static const std::vector<SourceLine> kNoSource;
    static const std::vector<ModuleCall> kNoModules;
    const auto& sources = call.source >= 0 ? program_.source_stacks[size_t(call.source)] : kNoSource;
    static const std::vector<const Line*> kNoLines;
    const auto& lines = call.source >= 0 ? lines_.of_stack(size_t(call.source)) : kNoLines;
    const auto& modules = call.modules >= 0 ? program_.module_stacks[size_t(call.modules)] : kNoModules;
    // The m-th "forward" is that of the m-th module.
    module_of_.assign(sources.size(), nullptr);
    size_t m = 0;
    for (size_t level = 0; level < sources.size(); ++level)
      if (sources[level].function == "forward" && m < modules.size()) module_of_[level] = &modules[m++];

    CallSite here;
    here.frames.reserve(sources.size());
    here.statements.reserve(sources.size());
    bool same = true;  // so far the node stands where the one before it stood
    for (size_t level = 0; level < sources.size(); ++level) {
      const std::string_view key = module_of_[level] ? module_of_[level]->key : std::string_view();
      same = same && level < stack_.size() && stack_[level].function == lines[level]->function &&
             stack_[level].key == key;
      if (!same) {
        stack_.resize(level);
        const int parent = level ? here.frames.back() : -1;
        found_.frames.push_back({parent, node, {}, module_of_[level] ? module_of_[level]->path : ""});
        stack_.push_back(
            {&sources[level], lines[level]->function, key, static_cast<int>(found_.frames.size()) - 1, -1});
      }
      Level& at = stack_[level];
      const ModuleCall* callee = level + 1 < sources.size() ? module_of_[level + 1] : nullptr;
      const bool goes_on =
          at.statement >= 0 &&
          continues(found_.statements[size_t(at.statement)], *lines[level], sources[level], callee) &&
          !(level + 1 == sources.size() && has_gone_round(at, sources[level], call));
      const bool same_line = goes_on && at.source->line == sources[level].line;
      if (!goes_on) {
        begin_statement(at, *lines[level], sources[level], node);
        stack_.resize(level + 1);
        same = false;
      }
      if (!same_line) at.calls.clear();
      at.source = &sources[level];
      Statement& statement = found_.statements[size_t(at.statement)];
      if (callee && (statement.modules.empty() || statement.modules.back() != callee->key)) {
        statement.modules.push_back(callee->key);
        statement.called.push_back(last_part(callee->path));
      }
      if (!same_line && statement.code.find(sources[level].code) == std::string::npos)
        statement.code += sources[level].code;
      statement.last_node = node;
      if (level + 1 == sources.size()) ++at.calls[name_of_call(call)];
      found_.frames[size_t(at.frame)].last_node = node;
      here.frames.push_back(at.frame);
      here.statements.push_back(at.statement);
    }
    if (stack_.size() > sources.size()) stack_.resize(sources.size());
    if (graph_.nodes[size_t(node)].source < 0) note_bindings(graph_.nodes[size_t(node)]);
    found_.sites.push_back(std::move(here));
  }

  // A region (`with torch.no_grad():`) is exported as a call of a sub-graph, without a stack of its own: it
  // stands where its first call stands.
  const GraphNode& stack_holder(const GraphNode& call) const {
    if (call.source >= 0) return call;
    for (const Operand& operand : call.operands) {
      if (operand.kind != Operand::Kind::graph) continue;
      for (const GraphNode& inner : operand.graph->nodes) {
        const GraphNode& holder = stack_holder(inner);
        if (holder.source >= 0) return holder;
      }
    }
    return call;
  }

  // A region's calls bind variables of the functions in which it stands.
  void note_bindings(const GraphNode& region) {
    for (const Operand& operand : region.operands) {
      if (!operand.graph) continue;
      for (const GraphNode& call : operand.graph->nodes) {
        note_bindings(call);
        if (call.source < 0) continue;
        const auto& lines = lines_.of_stack(size_t(call.source));
        for (size_t level = 0; level < std::min(lines.size(), stack_.size()); ++level) {
          if (stack_[level].function != lines[level]->function) break;
          Statement& statement = found_.statements[size_t(stack_[level].statement)];
          const std::vector<std::string>& names = lines[level]->names;
          statement.names_in_region.insert(statement.names_in_region.end(), names.begin(), names.end());
        }
      }
    }
  }

  // A call that the line names (`r.exp()`) is made once more than it stands there: a loop has gone round. Not those that
  // a line can ask for without their names: `a * b`, `x[None]`, `x.int()`, `x.mT`.
  bool has_gone_round(const Level& at, const SourceLine& line, const GraphNode& call) const {
    static const std::set<std::string, std::less<>> kOtherwiseWritten = {
        "add",        "sub",         "rsub",        "mul",       "div",    "floor_divide",
        "remainder",  "pow",         "matmul",      "neg",       "abs",    "eq",
        "ne",         "lt",          "le",          "gt",        "ge",     "bitwise_and",
        "bitwise_or", "bitwise_xor", "bitwise_not", "to",        "select", "slice",
        "index",      "unsqueeze",   "t",           "transpose", "permute"};
    const std::string_view name = name_of_call(call);
    if (at.source->line != line.line || kOtherwiseWritten.contains(name)) return false;
    const int named = times_called(line.code, name);
    if (named == 0 || is_comprehension(found_.statements[size_t(at.statement)].code)) return false;
    const auto made = at.calls.find(name);
    return made != at.calls.end() && made->second >= named;
  }

  // Another module called from the same statement. It is part of one expression if the text names it, or if
  // the text calls a method of the model: only `forward` leaves a frame, helpers like `self._ff_block(x)`
  // leave none. Else a loop has gone round: `for layer in self.layers: x = layer(x)`.
  static bool continues(const Statement& statement, const Line& line, const SourceLine& source,
                        const ModuleCall* callee) {
    if (statement.line != line.first) return false;
    if (!callee || statement.modules.empty() || statement.modules.back() == callee->key) return true;
    if (is_comprehension(statement.code)) return true;
    const std::string name = last_part(callee->path);
    const std::string code = statement.code + source.code;
    const bool called_before =
        std::find(statement.modules.begin(), statement.modules.end(), callee->key) != statement.modules.end();
    if (names_module(code, name)) return !called_before;
    return calls_helper(code, statement, name);
  }

  // A module of a list has a number for a name: `self.layers[2]`; a 2 elsewhere is none.
  static bool names_module(const std::string& code, const std::string& name) {
    const bool is_number = std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c); });
    return is_number ? code.find('[' + name + ']') != std::string::npos : contains_word(code, name);
  }

  static std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

  // A loop within an expression: "[f(x) for x in xs]".
  static bool is_comprehension(const std::string& code) {
    const size_t open = code.find_first_of("([{"), loop = code.find(" for ");
    return open != std::string::npos && loop != std::string::npos && open < loop && contains_word(code, "in");
  }

  // "self.NAME(" where NAME is none of the modules that were called.
  static bool calls_helper(const std::string& code, const Statement& statement, const std::string& name) {
    for (size_t at = code.find("self."); at != std::string::npos; at = code.find("self.", at + 1)) {
      size_t end = at + 5;
      while (end < code.size() && is_of_name(code[end])) ++end;
      const std::string method = code.substr(at + 5, end - at - 5);
      if (end >= code.size() || code[end] != '(' || method == name) continue;
      if (std::find(statement.called.begin(), statement.called.end(), method) == statement.called.end())
        return true;
    }
    return false;
  }

  void begin_statement(Level& at, const Line& line, const SourceLine& source, int node) {
    at.calls.clear();
    at.statement = static_cast<int>(found_.statements.size());
    found_.statements.push_back({at.frame,
                                 line.first,
                                 node,
                                 line.names,
                                 {},
                                 line.container,
                                 {},
                                 {},
                                 *line.code,
                                 is_of_library(source.file)});
    found_.frames[size_t(at.frame)].statements.push_back(at.statement);
  }

  const Program& program_;
  const Graph& graph_;
  const StatementLines& lines_;
  std::vector<Level> stack_;
  std::vector<const ModuleCall*> module_of_;  // of the node at hand, by level
  SourceFrames found_;
};

FrameFinder::FrameFinder(const Program& program)
    : program_(program), lines_(std::make_unique<StatementLines>(program)) {}
FrameFinder::~FrameFinder() = default;

SourceFrames FrameFinder::frames_of(const Graph& graph) const {
  return Unwinder(program_, graph, *lines_).run();
}

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool contains_word(std::string_view code, std::string_view word) {
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const bool begins = at == 0 || !is_of_name(code[at - 1]);
    const bool ends = at + word.size() == code.size() || !is_of_name(code[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

int times_called(std::string_view code, std::string_view name) {
  int times = 0;
  for (size_t at = code.find(name); at != std::string_view::npos; at = code.find(name, at + 1))
    times += code.substr(at + name.size()).starts_with('(') && (at == 0 || !is_of_name(code[at - 1]));
  return times;
}

std::string_view name_of_call(const GraphNode& call) {
  const std::string_view op = call.op;
  const size_t begin = op.rfind(':') + 1;
  return op.substr(begin, op.find('.', begin) - begin);
}

// "h = f(h)" of "if i == 4: h = f(h)": what stands behind the colon of a line that also opens a block.
std::string_view without_block(std::string_view code) {
  constexpr std::string_view kBlocks[] = {"if ", "elif ", "else:", "for ", "while ", "with "};
  const bool opens = std::any_of(std::begin(kBlocks), std::end(kBlocks),
                                 [&](std::string_view word) { return code.starts_with(word); });
  int depth = 0;
  for (size_t i = 0; opens && i < code.size(); ++i) {
    depth += code[i] == '(' || code[i] == '[' || code[i] == '{';
    depth -= code[i] == ')' || code[i] == ']' || code[i] == '}';
    if (code[i] != ':' || depth != 0) continue;
    const size_t rest = code.find_first_not_of(' ', i + 1);
    return rest == std::string_view::npos ? code : code.substr(rest);
  }
  return code;
}

// "f(x), size=(2, 3))": a line of a call that an earlier line has begun. What is bound is no call, and no bracket closes
// that the line did not open.
bool goes_on_with_call(std::string_view code, std::string_view left) {
  int depth = 0;
  for (const char c : code) {
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth < 0) return true;
  }
  for (size_t open = left.find('('); open != std::string_view::npos; open = left.find('(', open + 1))
    if (open > 0 && is_of_name(left[open - 1])) return true;
  return false;
}

std::vector<std::string> bound_names(std::string_view code) {
  code = without_block(code);
  // Everything up to a "=" that stands outside brackets and is no comparison.
  int depth = 0;
  size_t equals = std::string_view::npos;
  for (size_t i = 0; i < code.size() && equals == std::string_view::npos; ++i) {
    const char c = code[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c != '=' || depth != 0) continue;
    const char before = i ? code[i - 1] : ' ', after = i + 1 < code.size() ? code[i + 1] : ' ';
    if (after == '=' || before == '!' || before == '<' || before == '>' || before == '=') return {};
    equals = i;
  }
  if (equals == std::string_view::npos) return {};
  std::string_view left = code.substr(0, equals);
  if (goes_on_with_call(code, left)) return {};
  std::vector<std::string> names;
  std::string name;
  bool annotation = false;
  auto finish = [&] {
    if (!name.empty()) names.push_back(name);
    name.clear();
    annotation = false;
  };
  for (char c : left) {
    if (c == ',') {
      finish();
    } else if (c == ':') {
      annotation = true;
    } else if (!annotation && (is_of_name(c) || c == '.')) {
      name += c;
    } else if (c == '[') {
      return {};  // an element of something that goes on to live
    }
  }
  finish();
  return names;
}

std::string appended_to(std::string_view code) {
  constexpr std::string_view kAppend = ".append(";
  const size_t end = code.find(kAppend);
  if (end == std::string_view::npos) return {};
  const std::string_view list = code.substr(0, end);
  const bool is_name = std::ranges::all_of(list, [](char c) { return is_of_name(c) || c == '.'; });
  return std::string(is_name ? list : "");
}

}  // namespace metaprof
