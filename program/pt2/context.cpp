#include "program/pt2/context.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace metaprof {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Calls `function` with each part of `text` between separators.
template <class Function>
void split(std::string_view text, char separator, Function function) {
  for (;;) {
    const size_t end = text.find(separator);
    function(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string op_name_of(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (target.substr(0, kOps.size()) != kOps) {  // a Python function: math.ceil, _operator.mul
    const size_t dot = target.rfind('.');
    if (dot == std::string_view::npos) return std::string(target);
    return std::string(target.substr(0, dot)) + "::" + std::string(target.substr(dot + 1));
  }
  target.remove_prefix(kOps.size());
  const size_t space = target.find('.');
  if (space == std::string_view::npos) return std::string(target);
  std::string name = std::string(target.substr(0, space)) + "::" + std::string(target.substr(space + 1));
  if (name.ends_with(".default")) name.resize(name.size() - std::string_view(".default").size());
  return name;
}

std::string without_export_root(std::string path) {
  constexpr std::string_view kRoot = "_export_root";
  if (path == kRoot) return "";
  if (path.starts_with(kRoot) && path[kRoot.size()] == '.') return path.substr(kRoot.size() + 1);
  return path;
}

// Paths are keys that a user may have chosen (ModuleDict). They may hold commas, so an entry is split at its
// first and its last comma; and semicolons, so what has no two commas goes on behind the semicolon.
std::vector<ModuleCall> parse_module_stack(std::string_view text) {
  std::vector<ModuleCall> calls;
  calls.reserve(8);  // most stacks have fewer
  size_t begin = 0;
  for (size_t semicolon = 0; begin < text.size(); ++semicolon) {
    semicolon = std::min(text.find(';', semicolon), text.size());
    const std::string_view entry = text.substr(begin, semicolon - begin);
    const size_t first = entry.find(',');
    size_t last = first;  // found forwards, which is quicker than a search backwards
    for (size_t comma = first; comma != entry.npos; comma = entry.find(',', comma + 1)) last = comma;
    if (first != last) {
      ModuleCall& call = calls.emplace_back();
      call.key = entry.substr(0, first);
      call.path = without_export_root(std::string(entry.substr(first + 1, last - first - 1)));
      call.type = entry.substr(last + 1);
      begin = semicolon + 1;
    }
    if (semicolon == text.size()) break;
  }
  return calls;
}

// Lines `File "path", line N, in function`, each followed by the statement's lines.
std::vector<SourceLine> parse_stack_trace(std::string_view text) {
  std::vector<SourceLine> stack;
  bool wants_code = false;
  split(text, '\n', [&](std::string_view line) {
    line = trimmed(line);
    constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
    const size_t place = line.find(kLine);
    if (!line.starts_with(kFile) || place == std::string_view::npos) {
      if (wants_code && !line.empty()) stack.back().code = line;
      wants_code = wants_code && line.empty();
      return;
    }
    SourceLine level;
    level.file = line.substr(kFile.size(), place - kFile.size());
    line.remove_prefix(place + kLine.size());
    std::from_chars(line.data(), line.data() + line.size(), level.line);
    const size_t in = line.find(kIn);
    if (in != std::string_view::npos) level.function = line.substr(in + kIn.size());
    stack.push_back(std::move(level));
    wants_code = true;
  });
  return stack;
}

const std::string& Pt2Context::op_name(Json target) {
  const auto [entry, is_new] = ops_.try_emplace(target.raw_string());
  if (is_new) entry->second = op_name_of(target.string());
  return entry->second;
}

std::pair<int32_t&, bool> Pt2Context::Numbered::find(std::string_view text) {
  if (last && text == last_text) return {*last, false};
  const auto [entry, is_new] = numbers.try_emplace(text, -1);
  last_text = text;
  last = &entry->second;
  return {entry->second, is_new};
}

int32_t Pt2Context::module_stack(Json stack) {
  const auto [number, is_new] = module_stacks_.find(stack.raw_string());
  if (!is_new) return number;
  auto calls = parse_module_stack(stack.string());
  if (calls.empty()) return -1;
  // Most calls are those of the stack before.
  const auto* before = program.module_stacks.empty() ? nullptr : &program.module_stacks.back();
  for (size_t i = 0; i < calls.size(); ++i)
    if (!before || i >= before->size() || (*before)[i].path != calls[i].path)
      program.module_types.try_emplace(calls[i].path, calls[i].type);
  program.module_stacks.push_back(std::move(calls));
  return number = static_cast<int32_t>(program.module_stacks.size()) - 1;
}

int32_t Pt2Context::source_stack(Json trace) {
  const auto [number, is_new] = source_stacks_.find(trace.raw_string());
  if (!is_new) return number;
  auto lines = parse_stack_trace(trace.string());
  if (lines.empty()) return -1;
  program.source_stacks.push_back(std::move(lines));
  return number = static_cast<int32_t>(program.source_stacks.size()) - 1;
}

int32_t Pt2Context::expression(Json symbolic) {
  const Json text = symbolic.at("expr_str");
  const auto [number, is_new] = expressions_.find(text.raw_string());
  if (is_new) {
    SymbolicInteger integer;
    try {
      integer.expression = std::make_shared<Expression>(parse_expression(text.string()));
    } catch (const Error& error) {
      text.reject(error.what());
    }
    program.expressions.push_back(std::move(integer));
    number = static_cast<int32_t>(program.expressions.size()) - 1;
  }
  auto& hint = program.expressions[static_cast<size_t>(number)].hint;
  if (const Json value = symbolic.find("hint"); value && !hint) {
    const auto [kind, number] = value.only_member();
    if (kind == "as_bool") hint = number.boolean();
    if (kind == "as_int") hint = number.integer();
  }
  return number;
}

void Pt2Context::warn(const std::string& message) {
  program.warnings.emplace_back(Error(program.origin + ": " + message).what());  // on one line
}

void Pt2Context::warn_once(const std::string& subject, const std::string& message) {
  if (warned_.insert(subject).second) warn(message);
}

}  // namespace metaprof
