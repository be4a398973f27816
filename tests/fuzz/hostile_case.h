#pragma once
// A file that may be wrong in any way, a command and its options: what `metaprof` would be called with, run within this
// process.

#include <string>
#include <string_view>

#include "program/program.h"
#include "step/options.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/watched_cases.h"

namespace metaprof {

enum class Way : uint8_t { profile, profile_graph, graph, cudagraphs };

struct HostileCase {
  std::string bytes;
  std::string ending = ".mp";  ///< of the file's name: .mp or .pt2
  Way way = Way::profile;
  bool every_report = false;  ///< of profile, in place of the text
  RunOptions options;

  /// What the command line would say of it: "profile FILE --execution graph".
  std::string command(std::string_view file) const;
};

/// Options that most programs can be run with; the defaults as a rule.
RunOptions random_options(Random& random);

Outcome run_case(const HostileCase& hostile);

/// Reads the file. Errors: as parse_program and read_pt2.
Program read_case(const HostileCase& hostile);

/// "" or what is wrong with a message: more than one line, more than 500 characters, characters that move a terminal.
std::string complaint_of(std::string_view message);

}  // namespace metaprof
