#pragma once
// Texts that follow from the list of commands: completion for shells, and the manual page.

#include <string>
#include <vector>

#include "cli/line/command_facts.h"

namespace metaprof {

/// Words that stand for models and for devices.
struct CompletionNames {
  std::vector<std::string> models, devices;
};

/// For `source <(metaprof completion bash)`. `shell`: bash, zsh or fish. Errors: another one.
std::string completion_text(const std::vector<CommandFacts>& commands, const CompletionNames& names,
                            const std::string& shell);
/// metaprof(1), as roff. `date`: of the version.
std::string manual_page(const std::vector<CommandFacts>& commands, const std::string& version,
                        const std::string& date);

}  // namespace metaprof
