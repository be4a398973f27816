#include "reports/exports/folded.h"

#include <fmt/format.h>

#include <map>

#include "core/shown_text.h"
#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

std::string frame(std::string_view name) {
  std::string clean;
  for (const char c : shown(name)) clean += c == ' ' || c == ';' ? '_' : c;
  return clean;
}

std::string stack_of(const LargeStorage& storage) {
  std::string stack = "(root)";
  for (size_t begin = 0; begin < storage.module.size();) {
    const size_t dot = std::min(storage.module.find('.', begin), storage.module.size());
    stack += ';' + frame(std::string_view(storage.module).substr(begin, dot - begin));
    begin = dot + 1;
  }
  if (!storage.op.empty()) {
    stack += ';' + frame(storage.op);
  } else if (!storage.name.empty()) {
    stack += ';' + frame(storage.name);
  }
  return stack + ';' + std::string(to_string(storage.category));
}

}  // namespace

std::string folded_stacks(const std::vector<LargeStorage>& at_peak) {
  std::map<std::string, int64_t> stacks;
  for (const LargeStorage& storage : at_peak) stacks[stack_of(storage)] += storage.bytes.count;
  std::string text;
  for (const auto& [stack, bytes] : stacks) text += fmt::format("{} {}\n", stack, bytes);
  return text;
}

}  // namespace metaprof
