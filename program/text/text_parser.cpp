#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/utf8.h"
#include "program/text/program_line.h"
#include "program/text/text.h"
#include "program/text/text_graph.h"
#include "program/text/text_words.h"

namespace metaprof {
namespace {

constexpr size_t kMostNestedGraphs = 50;  // real programs have a few
// Stacks are kept level by level for each call; a text of some kilobytes could ask for any amount of them.
constexpr size_t kMostStackBytes = size_t{256} << 20, kMostLevels = 1000;

// A stack as the text defines it: an entry and the stack that encloses it.
template <class Entry>
struct StackDefinition {
  Entry entry;
  int64_t parent = 0;  // 0: none
  size_t levels = 1;
  int32_t index = -1;  // of the program's list, once a call has it
};

class Parser {
 public:
  explicit Parser(const std::string& origin) {
    program_.origin = origin;
    open_.push_back({std::make_unique<TextGraph>(tables_), {}, 0});
  }

  Program parse(std::string_view text) {
    for (int number = 1; !text.empty(); ++number) {
      const size_t end = std::min(text.find('\n'), text.size());
      ProgramLine line(program_.origin, number, text.substr(0, end));
      check_utf8(line, text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.at_end()) continue;
      if (!has_header_) {
        parse_header(line);
      } else {
        parse_line(line);
      }
      line.expect_end();
      last_ = number;
    }
    finish();
    return std::move(program_);
  }

 private:
  struct OpenGraph {
    std::unique_ptr<TextGraph> text;
    std::optional<CheckpointRegion> checkpoint;  // that is not closed yet
    int line;
  };
  TextGraph& text() { return *open_.back().text; }
  Graph& graph() { return text().graph; }
  bool in_program() const { return open_.size() == 1; }

  static bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
  static void check_utf8(const ProgramLine& line, std::string_view text) {
    if (std::ranges::all_of(text, is_ascii)) return;
    while (!text.empty()) {
      const size_t length = is_ascii(text[0]) ? 1 : utf8_length(text);
      if (length == 0) line.wrong("a character that is not UTF-8");
      text.remove_prefix(length);
    }
  }

  void parse_header(ProgramLine& line) {
    if (!line.skip("metaprof") || !line.skip("program"))
      line.wrong("a program begins with 'metaprof program 1'");
    const int64_t version = line.integer("the version of the text");
    if (version != kProgramTextVersion)
      line.wrong(fmt::format("version {} is not known; this program reads version {}", version,
                             kProgramTextVersion));
    has_header_ = true;
  }

  void parse_line(ProgramLine& line) {
    using Read = void (Parser::*)(ProgramLine&);
    static constexpr struct {
      std::string_view word;
      Read read;
    } kLines[] = {{"name", &Parser::parse_name},
                  {"evaluation", &Parser::parse_evaluation},
                  {"warning", &Parser::parse_warning},
                  {"assumed", &Parser::parse_assumed},
                  {"symbol", &Parser::parse_symbol},
                  {"range", &Parser::parse_range},
                  {"expression", &Parser::parse_expression_line},
                  {"resized", &Parser::parse_resized},
                  {"module", &Parser::parse_module},
                  {"type", &Parser::parse_type},
                  {"file", &Parser::parse_file},
                  {"line", &Parser::parse_source_line},
                  {"scope", &Parser::parse_scope},
                  {"stack", &Parser::parse_stack},
                  {"graph", &Parser::parse_graph},
                  {"captured", &Parser::parse_captured},
                  {"environment", &Parser::parse_environment},
                  {"measured", &Parser::parse_measured},
                  {"requests", &Parser::parse_requests},
                  {"return", &Parser::parse_return},
                  {"checkpoint", &Parser::parse_checkpoint},
                  {"framework", &Parser::parse_framework}};
    if (line.skip('}')) return parse_closing(line);
    const std::string_view first = line.peek();
    // Most lines are calls: they begin with a value, or with an operator that has its namespace.
    if (first.empty() || first == "_" || first.find("::") != first.npos) return parse_call(line);
    for (const auto& row : kLines)
      if (row.word == first) {
        line.skip(first);
        return (this->*row.read)(line);
      }
    for (const InputWord& row : kInputWords)
      if (line.skip(row.word)) return parse_input(line, row.kind);
    for (const OutputWord& row : kOutputWords)
      if (line.skip(row.word)) return parse_output(line, row.kind);
    parse_call(line);
  }

  void parse_name(ProgramLine& line) { program_.name = line.word("the name of the program"); }
  void parse_evaluation(ProgramLine&) { program_.training = false; }
  void parse_captured(ProgramLine& line) {
    if (!line.skip("torch")) line.expected("'torch' and its version");
    Capture& capture = program_.captured.emplace();
    capture.torch = line.word("the version of torch");
    if (line.skip("device")) capture.device = line.word("the name of a device");
    if (line.skip("memory")) capture.memory = line.integer("the device's memory in bytes");
    if (line.skip("alloc_conf")) capture.alloc_conf = line.word("settings of the allocator");
    if (line.skip("workspaces")) capture.workspaces = line.word("auto or none");
    if (line.skip("unfinished")) capture.unfinished = line.word("what ended the run");
  }
  void parse_environment(ProgramLine& line) {
    if (!program_.captured) line.wrong("'environment' stands behind 'captured'");
    const std::string name = line.word("the name of a variable of the environment");
    program_.captured->environment[name] = line.word("its value");
  }
  void parse_measured(ProgramLine& line) {
    if (!program_.captured) line.wrong("'measured' stands behind 'captured'");
    Capture::Measured& measured = program_.captured->measured.emplace_back();
    measured.phase = line.word("the name of a phase");
    measured.step = line.integer("the number of a step");
    measured.micro = line.integer("the number of a micro-batch, or -1");
    for (const auto member : kAllocatorNumbers)
      for (int64_t AllocatorNumber::*which : {&AllocatorNumber::current, &AllocatorNumber::peak})
        measured.numbers.*member.*which = line.integer("a statistic of the allocator");
  }
  void parse_requests(ProgramLine& line) {
    if (!program_.captured || program_.captured->measured.empty())
      line.wrong("'requests' stands behind a 'measured' line");
    while (!line.at_end())
      program_.captured->measured.back().requests.push_back(line.integer("bytes, or how many requests ago"));
  }
  void parse_framework(ProgramLine& line) { program_.framework = line.word("a version of PyTorch"); }
  void parse_warning(ProgramLine& line) { program_.warnings.push_back(line.word("a warning")); }

  // --- Symbols

  void parse_assumed(ProgramLine& line) {
    const std::string symbol = line.word("the name of a symbol");
    program_.assumed[symbol] = line.word("what is assumed");
  }
  void parse_symbol(ProgramLine& line) {
    const std::string name = line.word("the name of a symbol");
    line.take('=');
    program_.symbols[name] = line.integer("the value of the symbol");
    if (line.peek() == "in") program_.ranges[name] = range(line);
  }
  void parse_range(ProgramLine& line) {
    const std::string name = line.word("the name of a symbol");
    program_.ranges[name] = range(line);
  }
  static SymbolRange range(ProgramLine& line) {
    const auto bound = [&]() -> std::optional<int64_t> {
      if (line.skip("any")) return std::nullopt;
      return line.integer("a bound of the symbol, or 'any'");
    };
    if (!line.skip("in")) line.expected("'in'");
    const auto least = bound();
    if (!line.skip("to")) line.expected("'to'");
    return {least, bound()};
  }
  void parse_expression_line(ProgramLine& line) {
    const int64_t number = line.numbered('e', "the number of an expression as e0");
    if (number != static_cast<int64_t>(program_.expressions.size()))
      line.wrong(fmt::format("expressions are numbered in order: e{} is next", program_.expressions.size()));
    SymbolicInteger symbolic;
    if (line.skip("hint")) symbolic.hint = line.integer("the expression's value");
    line.take('=');
    const std::string text = line.word("an expression in quotes");
    try {
      symbolic.expression = std::make_shared<Expression>(parse_expression(text));
    } catch (const Error& error) {
      line.wrong(error.what());
    }
    program_.expressions.push_back(std::move(symbolic));
    tables_.expressions = program_.expressions.size();
  }
  void parse_resized(ProgramLine& line) {
    const int64_t before = line.integer("a size of an input");
    if (!line.skip("to")) line.expected("'to'");
    program_.resizing.changes.push_back({before, line.integer("what the size has become")});
  }

  // --- Modules and source lines

  void parse_module(ProgramLine& line) {
    program_.modules.push_back(line.word("the path of a module"));
    if (!line.at_end()) program_.module_types[program_.modules.back()] = line.word("the module's type");
  }
  void parse_type(ProgramLine& line) {
    const std::string path = line.word("the path of a module");
    program_.module_types[path] = line.word("the module's type");
  }
  void parse_file(ProgramLine& line) {
    const int64_t number = new_number(line, 'f', files_);
    files_[number] = line.word("the name of a file");
  }
  void parse_source_line(ProgramLine& line) {
    const int64_t number = new_number(line, 'l', lines_);
    SourceLine source;
    source.file = known(line, 'f', files_, "file")->second;
    source.line = static_cast<int>(std::clamp<int64_t>(line.integer("a line number"), 0, INT32_MAX));
    source.function = line.word("the name of a function");
    source.code = line.word("the line's text");
    lines_[number] = std::move(source);
  }
  void parse_scope(ProgramLine& line) {
    const int64_t number = new_number(line, 'm', scopes_);
    StackDefinition<ModuleCall> scope;
    scope.entry.path = scope.entry.key = line.word("the path of a module");
    const auto type = program_.module_types.find(scope.entry.path);
    if (type != program_.module_types.end()) scope.entry.type = type->second;
    if (line.skip("type")) scope.entry.type = line.word("the module's type");
    if (line.skip("key")) scope.entry.key = line.word("the key of a module's call");
    define_stack(line, 'm', scopes_, number, std::move(scope));
  }
  void parse_stack(ProgramLine& line) {
    const int64_t number = new_number(line, 's', stacks_);
    StackDefinition<SourceLine> stack;
    stack.entry = known(line, 'l', lines_, "source line")->second;
    define_stack(line, 's', stacks_, number, std::move(stack));
  }

  template <class Table>
  static int64_t new_number(ProgramLine& line, char letter, const Table& table) {
    const int64_t number = line.numbered(letter, fmt::format("a number as {}1", letter));
    if (number == 0 || table.contains(number))
      line.wrong(fmt::format("{}{} is defined twice, or 0", letter, number));
    line.take('=');
    return number;
  }
  // The entry of a table that the line names.
  template <class Table>
  static typename Table::iterator known(ProgramLine& line, char letter, Table& table, std::string_view what) {
    const int64_t number = line.numbered(letter, fmt::format("a {} as {}1", what, letter));
    const auto found = table.find(number);
    if (found == table.end()) line.wrong(fmt::format("there is no {} {}{} yet", what, letter, number));
    return found;
  }
  template <class Stacks, class Definition>
  static void define_stack(ProgramLine& line, char letter, Stacks& stacks, int64_t number,
                           Definition&& stack) {
    if (line.skip("in")) {
      const auto parent = known(line, letter, stacks, "stack");
      stack.parent = parent->first;
      stack.levels = parent->second.levels + 1;
      if (stack.levels > kMostLevels) line.wrong(fmt::format("a stack of more than {} levels", kMostLevels));
    }
    stacks.emplace(number, std::forward<Definition>(stack));
  }

  // Index of the program's list of stacks, into which a stack comes when the first call has it.
  template <class Stacks, class List>
  int32_t stack_index(ProgramLine& line, char letter, Stacks& stacks, List& list) {
    auto& stack = known(line, letter, stacks, "stack")->second;
    if (stack.index >= 0) return stack.index;
    auto& levels = list.emplace_back(stack.levels);
    const auto* level = &stack;
    for (size_t i = stack.levels; i-- > 0;) {
      levels[i] = level->entry;
      stack_bytes_ += bytes_of(level->entry);
      if (i > 0) level = &stacks.at(level->parent);
    }
    if (stack_bytes_ > kMostStackBytes)
      line.wrong(fmt::format("the stacks of all calls take more than {} MiB", kMostStackBytes >> 20));
    return stack.index = static_cast<int32_t>(list.size()) - 1;
  }
  static size_t bytes_of(const SourceLine& line) {
    return sizeof line + line.file.size() + line.function.size() + line.code.size();
  }
  static size_t bytes_of(const ModuleCall& call) {
    return sizeof call + call.path.size() + call.type.size() + call.key.size();
  }

  // --- Inputs and outputs

  void parse_input(ProgramLine& line, ProgramInput::Kind kind) {
    if (!in_program()) {
      if (kind != ProgramInput::Kind::user) line.wrong("a graph inside the program has plain inputs only");
      return graph().inputs.push_back(text().define(line));
    }
    if (!graph().nodes.empty()) line.wrong("inputs stand before the first call");
    ProgramInput input;
    input.kind = kind;
    input.name = line.word("the name of an input");
    line.take('=');
    if (kind == ProgramInput::Kind::constant) {
      input.constant = text().operand(line).constant;
      if (line.skip("as")) input.value = text().define(line);
    } else {
      input.value = text().define(line);
      input_facts(line, input);
    }
    graph().inputs.push_back(input.value);
    program_.inputs.push_back(std::move(input));
  }

  void input_facts(ProgramLine& line, ProgramInput& input) {
    if (input.kind != ProgramInput::Kind::user &&
        (input.value == kNoValue || !graph().values[size_t(input.value)].tensor))
      line.wrong(fmt::format("'{}' needs a tensor as %x: f32[2,3]", input.name));
    input.persistent = !line.skip("not_persistent");
    input.own_dtype = line.skip("own_dtype");
    if (line.skip("tied")) {
      const std::string first = line.word("the first name of the same parameter");
      const auto found = std::ranges::find(program_.inputs, first, &ProgramInput::name);
      if (found == program_.inputs.end()) line.wrong(fmt::format("there is no input '{}' yet", first));
      if (found->tied_to >= 0 || found->value == kNoValue)
        line.wrong(fmt::format("'{}' is not the first name of a parameter", first));
      input.tied_to = static_cast<int>(found - program_.inputs.begin());
    }
    if (line.skip("exported")) {
      const Operand sizes = text().operand(line);
      if (sizes.constant.kind() != Value::Kind::integers || input.value == kNoValue)
        line.wrong("sizes as [4,512] are expected behind 'exported'");
      program_.resizing.inputs[input.value] = sizes.constant.integers();
    }
  }

  void parse_output(ProgramLine& line, ProgramOutput::Kind kind) {
    if (!in_program()) line.wrong("a graph inside the program has 'return' lines");
    ProgramOutput output;
    output.kind = kind;
    if (!line.next_is('=')) output.name = line.word("what the output is of");
    line.take('=');
    output.operand = text().operand(line);
    graph().outputs.push_back(output.operand);
    program_.outputs.push_back(std::move(output));
  }

  // --- Graphs and calls

  void parse_graph(ProgramLine& line) {
    if (open_.size() > kMostNestedGraphs)
      line.wrong(fmt::format("graphs are nested too deep, more than {}", kMostNestedGraphs));
    line.take('{');
    open_.push_back({std::make_unique<TextGraph>(tables_), {}, last_ + 1});
  }
  void parse_return(ProgramLine& line) {
    if (in_program()) line.wrong("the program has 'output' and 'loss' lines");
    graph().outputs.push_back(text().operand(line));
  }
  void parse_checkpoint(ProgramLine& line) {
    auto& checkpoint = open_.back().checkpoint;
    if (checkpoint) line.wrong("a checkpoint inside a checkpoint");
    const size_t begin = graph().nodes.size();
    checkpoint = CheckpointRegion{
        .begin = begin, .end = begin, .reentrant = line.skip("reentrant"), .whole = line.skip("whole")};
    if (line.skip("keep"))
      while (!line.next_is('{')) checkpoint->kept.push_back(parse_kept(line));
    if (checkpoint->reentrant && !checkpoint->kept.empty())
      line.wrong("a reentrant checkpoint keeps no results");
    if (checkpoint->reentrant && checkpoint->whole)
      line.wrong("a reentrant checkpoint is always recomputed to its end");
    line.take('{');
  }
  // "aten::mm(0, 2)"
  static KeptCalls parse_kept(ProgramLine& line) {
    KeptCalls calls{.op = line.word("an operator whose results are kept"), .which = {}};
    line.take('(');
    while (!line.skip(')')) {
      if (!calls.which.empty()) line.take(',');
      const int64_t number = line.integer("the number of a call, from 0");
      if (number < 0 || number > std::numeric_limits<int>::max() ||
          (!calls.which.empty() && number <= calls.which.back()))
        line.wrong("numbers of calls that are kept are not negative, and rise");
      calls.which.push_back(static_cast<int>(number));
    }
    return calls;
  }
  void parse_closing(ProgramLine& line) {
    if (auto& checkpoint = open_.back().checkpoint) {
      checkpoint->end = graph().nodes.size();
      if (checkpoint->end == checkpoint->begin) line.wrong("a checkpoint without calls");
      graph().checkpoints.push_back(*checkpoint);
      return checkpoint.reset();
    }
    if (in_program()) line.wrong("nothing is open that '}' could close");
    if (!line.skip("as")) line.expected("'as' and the graph's name");
    const int64_t number = line.numbered('g', "the graph's name as g0");
    if (tables_.graphs.contains(number)) line.wrong(fmt::format("there are two graphs g{}", number));
    auto closed = std::make_shared<const Graph>(std::move(graph()));
    open_.pop_back();
    tables_.graphs.emplace(number, std::move(closed));
  }

  void parse_call(ProgramLine& line) {
    GraphNode node = text().call(line);
    while (!line.at_end()) {
      if (line.skip("in"))
        node.modules = stack_index(line, 'm', scopes_, program_.module_stacks);
      else if (line.skip("at"))
        node.source = stack_index(line, 's', stacks_, program_.source_stacks);
      else if (line.skip("dtype_named"))
        node.dtype_named = true;
      else if (line.skip("dtype_of"))
        node.dtype_of = text().use(line);
      else if (line.skip("without_autocast"))
        node.without_autocast = true;
      else if (line.skip("copies_to_view"))
        node.copies_to_view = true;
      else if (line.skip("keep"))
        node.keeps.push_back(kept(line));
      else if (line.skip("drop"))
        do node.drops.push_back(text().drop(line));
        while (line.skip(','));
      else
        line.expected(
            "in, at, dtype_named, dtype_of, without_autocast, copies_to_view, keep, drop, or the end of the "
            "line");
    }
    graph().nodes.push_back(std::move(node));
  }

  KeptValue kept(ProgramLine& line) {
    if (!in_program()) line.wrong("only the program's own calls make what outlives a run");
    KeptValue kept{.value = text().use(line)};
    if (!line.skip("until")) line.expected("'until' and the value that the next run makes in its place");
    kept.until = text().made(line);
    return kept;
  }

  void finish() {
    const auto wrong = [&](const std::string& what) {
      fail("{}:{}: {}", program_.origin, std::max(last_, 1), what);
    };
    if (!has_header_) wrong("the text is empty; a program begins with 'metaprof program 1'");
    if (open_.size() > 1)
      wrong(fmt::format("the graph of line {} is not closed with '}}'", open_.back().line));
    if (open_.back().checkpoint) wrong("a checkpoint is not closed with '}'");
    program_.graph = std::move(graph());
    program_.graph.values.shrink_to_fit();
    program_.graph.nodes.shrink_to_fit();
  }

  Program program_;
  TextTables tables_;
  std::vector<OpenGraph> open_;  // the program's own graph first
  std::map<int64_t, std::string> files_;
  std::map<int64_t, SourceLine> lines_;
  std::map<int64_t, StackDefinition<ModuleCall>> scopes_;
  std::map<int64_t, StackDefinition<SourceLine>> stacks_;
  size_t stack_bytes_ = 0;
  bool has_header_ = false;
  int last_ = 0;  // the last line that was read
};

}  // namespace

Program parse_program(std::string_view text, const std::string& origin) { return Parser(origin).parse(text); }

}  // namespace metaprof
