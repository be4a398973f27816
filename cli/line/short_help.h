#pragma once
// What -h shows: what a command is for, how it is typed, and the names of its options. --help explains them.

#include <string>

#include "cli/line/command_facts.h"

namespace metaprof {

/// Lines of at most `width` characters, but for examples.
std::string short_help(const CommandFacts& command, size_t width = 80);

}  // namespace metaprof
