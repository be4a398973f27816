#include "estimate/prepare/source_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace metaprof {
namespace {

// The deepest line that is not the framework's; null: all are.
const SourceLine* deepest_of_user(const std::vector<SourceLine>& stack) {
  for (size_t i = stack.size(); i-- > 0;) {
    const std::string& file = stack[i].file;
    if (file.find("/torch/") == std::string::npos && !file.starts_with("torch/")) return &stack[i];
  }
  return nullptr;
}

// "modeling_llama.py:182"; empty: all lines are the framework's.
std::string users_line(const std::vector<SourceLine>& stack) {
  const SourceLine* line = deepest_of_user(stack);
  return line ? fmt::format("{}:{}", line->file.substr(line->file.rfind('/') + 1), line->line) : "";
}

// "/somewhere/project/net/model.py" is "net/model.py" in a checkout that has this file.
std::string from_here(const std::string& file) {
  for (size_t slash = 0; (slash = file.find('/', slash)) != std::string::npos; ++slash) {
    const std::string end = file.substr(slash + 1);
    std::error_code code;
    if (!end.empty() && std::filesystem::is_regular_file(end, code)) return end;
  }
  return file;
}

bool is_inside(const Program& program, const GraphNode& node, const std::string& module) {
  if (node.modules < 0) return module.empty();
  return std::ranges::any_of(program.module_stacks[static_cast<size_t>(node.modules)],
                             [&](const auto& call) { return call.path == module; });
}

}  // namespace

SourceLines source_lines(const Program& program) {
  SourceLines lines;
  std::vector<std::string> by_stack;
  for (const std::vector<SourceLine>& stack : program.source_stacks) by_stack.push_back(users_line(stack));
  for (const GraphNode& node : program.graph.nodes) {
    if (node.source < 0) continue;
    const std::string& line = by_stack[static_cast<size_t>(node.source)];
    if (line.empty()) continue;
    std::string module;
    if (node.modules >= 0) {
      const auto& calls = program.module_stacks[static_cast<size_t>(node.modules)];
      if (!calls.empty()) module = calls.back().path;
    }
    lines.by_call.try_emplace({module, node.op.substr(0, node.op.find('.'))}, line);
    lines.by_module.try_emplace(module, line);
  }
  return lines;
}

std::optional<SourceLine> users_line_of(const Program& program, const std::string& module) {
  for (const GraphNode& node : program.graph.nodes) {
    if (node.source < 0 || !is_inside(program, node, module)) continue;
    const SourceLine* line = deepest_of_user(program.source_stacks[static_cast<size_t>(node.source)]);
    if (!line) continue;
    SourceLine found = *line;
    found.file = from_here(found.file);
    return found;
  }
  return std::nullopt;
}

}  // namespace metaprof
