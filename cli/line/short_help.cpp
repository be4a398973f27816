#include "cli/line/short_help.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace metaprof {
namespace {

constexpr size_t kMostExamples = 4;

// The first line, and the first examples below it.
std::string purpose_and_examples(const std::string& description) {
  std::istringstream lines(description);
  std::string text, line;
  std::getline(lines, line);
  text = line + "\n\n";
  size_t examples = 0;
  while (examples < kMostExamples && std::getline(lines, line))
    if (line.starts_with("  metaprof ")) text += line + "\n", ++examples;
  return text;
}

std::string usage(const CommandFacts& command) {
  std::string text = "metaprof " + command.name;
  for (const CommandFacts::Option& option : command.options)
    if (!option.name.starts_with("--")) text += " " + option.name;
  return text + " [OPTIONS]";
}

// "The step: --precision --optimizer", on as many lines as it takes.
std::string wrapped(const std::string& title, const std::vector<std::string>& words, size_t width) {
  std::string text = title + ":", line = text;
  for (const std::string& word : words) {
    if (line.size() + 1 + word.size() > width) {
      text += "\n   ";
      line = "   ";
    }
    text += " " + word;
    line += " " + word;
  }
  return text + "\n";
}

}  // namespace

std::string short_help(const CommandFacts& command, size_t width) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // in the order in which they come
  for (const CommandFacts::Option& option : command.options) {
    if (!option.name.starts_with("--") || option.name == "--help") continue;
    auto group = groups.begin();
    while (group != groups.end() && group->first != option.group) ++group;
    if (group == groups.end()) group = groups.insert(group, {option.group, {}});
    group->second.push_back(option.name);
  }
  std::string text = purpose_and_examples(command.description) + "\nUsage: " + usage(command) + "\n\n";
  for (const auto& [title, names] : groups) text += wrapped(title, names, width);
  return text + fmt::format("\nmetaprof {} --help explains each.\n", command.name);
}

}  // namespace metaprof
