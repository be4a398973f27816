#include "estimate/source_lines.h"

#include <fmt/format.h>

namespace metaprof {
namespace {

// "modeling_llama.py:182"; empty: all lines are the framework's.
std::string users_line(const std::vector<SourceLine>& stack) {
  for (size_t i = stack.size(); i-- > 0;) {
    const std::string& file = stack[i].file;
    if (file.find("/torch/") != std::string::npos || file.starts_with("torch/")) continue;
    return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), stack[i].line);
  }
  return "";
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

}  // namespace metaprof
