#include "meta/step/lifetimes.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace metaprof {
namespace {

struct Statement {
  int frame;
  int line;
  int last_node;
  std::vector<std::string> names;
  std::vector<std::string> modules;  // keys of modules called from this statement so far
  std::vector<std::string> called;   // and their names
  std::string code;                  // the lines of it that were seen
};

struct Frame {
  int parent;
  int last_node;
  std::vector<int> statements;
};

// Where one node stands: a frame and a statement per level of its stack, outermost first.
struct Place {
  std::vector<int> frames, statements;
};

bool contains_word(std::string_view code, std::string_view word) {
  auto belongs = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const bool begins = at == 0 || !belongs(code[at - 1]);
    const bool ends = at + word.size() == code.size() || !belongs(code[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

bool begins_statement(const std::string& code) {
  return code.starts_with("return") || !bound_names(code).empty();
}

int open_brackets(const std::string& code) {
  int depth = 0;
  for (char c : code) {
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
  }
  return depth;
}

// The first line of the statement that a line belongs to: a line without an assignment after one that leaves
// a bracket open goes on with it.
class StatementLines {
 public:
  explicit StatementLines(const Program& program) {
    for (const auto& stack : program.source_stacks)
      for (const SourceFrame& frame : stack)
        lines_[{frame.file, frame.function}].emplace(frame.line, Line{frame.line, &frame.code});
    for (auto& [function, lines] : lines_) {
      const Line* open = nullptr;
      for (auto& [number, line] : lines) {
        if (begins_statement(*line.code)) {
          open = open_brackets(*line.code) > 0 ? &line : nullptr;
        } else if (open) {
          line = *open;
        }
      }
    }
  }
  struct Line {
    int first;
    const std::string* code;  // of the first line
  };
  const Line& of(const SourceFrame& frame) const {
    return lines_.at({frame.file, frame.function}).at(frame.line);
  }

 private:
  std::map<std::pair<std::string, std::string>, std::map<int, Line>> lines_;
};

// Follows the nodes in order and tells the frames and statements they run in apart.
class Unwinder {
 public:
  Unwinder(const Program& program, const Graph& graph) : program_(program), graph_(graph), lines_(program) {}

  std::vector<Frame> frames;
  std::vector<Statement> statements;
  std::vector<Place> places;

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) place(static_cast<int>(i));
  }

 private:
  struct Level {
    const SourceFrame* source;
    std::string key;  // of the module whose forward this is
    int frame, statement;
  };

  void place(int node) {
    const GraphNode& call = graph_.nodes[size_t(node)];
    static const std::vector<SourceFrame> kNoSource;
    static const std::vector<ModuleFrame> kNoModules;
    const auto& sources = call.source >= 0 ? program_.source_stacks[size_t(call.source)] : kNoSource;
    const auto& modules = call.modules >= 0 ? program_.module_stacks[size_t(call.modules)] : kNoModules;
    // The m-th "forward" is that of the m-th module.
    std::vector<const ModuleFrame*> module_of(sources.size(), nullptr);
    size_t m = 0;
    for (size_t level = 0; level < sources.size(); ++level)
      if (sources[level].function == "forward" && m < modules.size()) module_of[level] = &modules[m++];

    Place here;
    bool same = true;  // so far the node stands where the one before it stood
    for (size_t level = 0; level < sources.size(); ++level) {
      const std::string key = module_of[level] ? module_of[level]->key : std::string();
      same = same && level < stack_.size() && stack_[level].source->file == sources[level].file &&
             stack_[level].source->function == sources[level].function && stack_[level].key == key;
      if (!same) {
        stack_.resize(level);
        const int parent = level ? here.frames.back() : -1;
        frames.push_back({parent, node, {}});
        stack_.push_back({&sources[level], key, static_cast<int>(frames.size()) - 1, -1});
      }
      Level& at = stack_[level];
      const ModuleFrame* callee = level + 1 < sources.size() ? module_of[level + 1] : nullptr;
      const bool goes_on =
          at.statement >= 0 && continues(statements[size_t(at.statement)], sources[level], callee);
      if (!goes_on) {
        begin_statement(at, sources[level], node);
        stack_.resize(level + 1);
        same = false;
      }
      at.source = &sources[level];
      Statement& statement = statements[size_t(at.statement)];
      if (callee && (statement.modules.empty() || statement.modules.back() != callee->key)) {
        statement.modules.push_back(callee->key);
        statement.called.push_back(last_part(callee->path));
      }
      if (statement.code.find(sources[level].code) == std::string::npos)
        statement.code += sources[level].code;
      statement.last_node = node;
      frames[size_t(at.frame)].last_node = node;
      here.frames.push_back(at.frame);
      here.statements.push_back(at.statement);
    }
    if (stack_.size() > sources.size()) stack_.resize(sources.size());
    places.push_back(std::move(here));
  }

  // Another module called from the same statement. It is part of one expression if the text names it, or if
  // the text calls a method of the model: only `forward` leaves a frame, helpers like `self._ff_block(x)`
  // leave none. Else a loop has gone round: `for layer in self.layers: x = layer(x)`.
  bool continues(const Statement& statement, const SourceFrame& source, const ModuleFrame* callee) const {
    if (statement.line != lines_.of(source).first) return false;
    if (!callee || statement.modules.empty() || statement.modules.back() == callee->key) return true;
    const std::string name = last_part(callee->path);
    const std::string code = statement.code + source.code;
    const bool called_before =
        std::find(statement.modules.begin(), statement.modules.end(), callee->key) != statement.modules.end();
    if (contains_word(code, name)) return !called_before;
    return calls_helper(code, statement, name);
  }

  static std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

  // "self.NAME(" where NAME is none of the modules that were called.
  static bool calls_helper(const std::string& code, const Statement& statement, const std::string& name) {
    for (size_t at = code.find("self."); at != std::string::npos; at = code.find("self.", at + 1)) {
      size_t end = at + 5;
      while (end < code.size() && (std::isalnum(static_cast<unsigned char>(code[end])) || code[end] == '_'))
        ++end;
      const std::string method = code.substr(at + 5, end - at - 5);
      if (end >= code.size() || code[end] != '(' || method == name) continue;
      if (std::find(statement.called.begin(), statement.called.end(), method) == statement.called.end())
        return true;
    }
    return false;
  }

  void begin_statement(Level& at, const SourceFrame& source, int node) {
    at.statement = static_cast<int>(statements.size());
    const StatementLines::Line& first = lines_.of(source);
    statements.push_back({at.frame, first.first, node, bound_names(*first.code), {}, {}, *first.code});
    frames[size_t(at.frame)].statements.push_back(at.statement);
  }

  const Program& program_;
  const Graph& graph_;
  StatementLines lines_;
  std::vector<Level> stack_;
};

void visit_values(const Operand& operand, const auto& visit) {
  if (operand.kind == Operand::Kind::value) visit(operand.value);
  for (ValueId value : operand.values)
    if (value != kNoValue) visit(value);
}

class Analysis {
 public:
  Analysis(const Program& program, const Graph& graph) : graph_(graph), unwinder_(program, graph) {
    unwinder_.run();
  }

  std::vector<int32_t> run() {
    const auto nodes = static_cast<int32_t>(graph_.nodes.size());
    std::vector<int> producer(graph_.values.size(), -1), position(graph_.values.size(), 0);
    std::vector<std::vector<int>> users(graph_.values.size());
    for (int node = 0; node < nodes; ++node) {
      for (const Operand& operand : graph_.nodes[size_t(node)].operands)
        visit_values(operand, [&](ValueId value) { users[size_t(value)].push_back(node); });
      int at = 0;
      for (const Target& target : graph_.nodes[size_t(node)].targets)
        for (ValueId value : target.values) {
          if (value == kNoValue) continue;
          producer[size_t(value)] = node;
          position[size_t(value)] = at++;
        }
    }
    std::vector<int32_t> dropped(graph_.values.size(), nodes);
    for (size_t value = 0; value < dropped.size(); ++value)
      if (producer[value] >= 0)
        dropped[value] = drop_after(producer[value], users[value], size_t(position[value]));
    for (ValueId input : graph_.inputs)
      if (input != kNoValue) dropped[size_t(input)] = nodes;
    for (const Operand& output : graph_.outputs)
      visit_values(output, [&](ValueId value) { dropped[size_t(value)] = nodes; });
    return dropped;
  }

 private:
  // The level of the frame that owns a value: the deepest that its producer shares with all its users.
  size_t shared_levels(const Place& place, const std::vector<int>& users) const {
    size_t levels = place.frames.size();
    for (int user : users) {
      const auto& frames = unwinder_.places[size_t(user)].frames;
      size_t common = 0;
      while (common < levels && common < frames.size() && frames[common] == place.frames[common]) ++common;
      levels = common;
    }
    return levels;
  }

  int drop_after(int producer, const std::vector<int>& users, size_t position) const {
    const Place& place = unwinder_.places[size_t(producer)];
    const size_t levels = shared_levels(place, users);
    int last_use = producer;
    if (levels == 0) {
      for (int user : users) last_use = std::max(last_use, user);
      return last_use;
    }
    const size_t level = levels - 1;
    // A callee holds what it was passed until it returns.
    bool other_statement = users.empty();
    for (int user : users) {
      const Place& at = unwinder_.places[size_t(user)];
      const int released =
          at.frames.size() > levels ? unwinder_.frames[size_t(at.frames[levels])].last_node : user;
      last_use = std::max(last_use, released);
      other_statement |= at.statements[level] != place.statements[level];
    }
    const Statement& statement = unwinder_.statements[size_t(place.statements[level])];
    if (!other_statement || statement.names.empty()) return last_use;
    const Frame& frame = unwinder_.frames[size_t(place.frames[level])];
    const std::string& name = statement.names[position < statement.names.size() ? position : 0];
    const int bound_again = rebound(frame, place.statements[level], name);
    if (bound_again >= last_use) return bound_again;
    return users.empty() ? std::max(bound_again, last_use) : frame.last_node;
  }

  // The last node of the next statement of the frame that binds this name; the frame's last node if there is
  // none.
  int rebound(const Frame& frame, int statement, const std::string& name) const {
    for (int later : frame.statements) {
      if (later <= statement) continue;
      const Statement& other = unwinder_.statements[size_t(later)];
      if (std::find(other.names.begin(), other.names.end(), name) != other.names.end())
        return other.last_node;
    }
    return frame.last_node;
  }

  const Graph& graph_;
  Unwinder unwinder_;
};

}  // namespace

std::vector<std::string> bound_names(std::string_view code) {
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
    } else if (!annotation && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.')) {
      name += c;
    } else if (c == '[') {
      return {};  // an element of something that goes on to live
    }
  }
  finish();
  return names;
}

std::vector<int32_t> value_lifetimes(const Program& program, const Graph& graph) {
  return Analysis(program, graph).run();
}

}  // namespace metaprof
