#pragma once

#include <string>
#include <vector>

namespace metaprof {

/// What a command takes, for texts about it.
struct CommandFacts {
  struct Option {
    std::string name, value, help;  ///< "--batch", or "MODEL" of a word; "N" (empty: a flag); what it does
    std::string group;              ///< "The inputs"
  };
  std::string name, description;
  std::vector<Option> options;
};

}  // namespace metaprof
