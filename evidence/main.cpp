// ops_replay LOG.gz… [--only GLOB] [--verbose] [--json FILE]

#include <iostream>

#include "evidence/replay_report.h"
#include "meta/core/error.h"

int main(int argc, char** argv) try {
  metaprof::ReplayOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verbose") {
      options.verbose = true;
    } else if ((word == "--only" || word == "--json") && i + 1 < argc) {
      (word == "--only" ? options.only : options.json) = argv[++i];
    } else {
      options.logs.push_back(word);
    }
  }
  metaprof::replay_logs(options, std::cout);
} catch (const metaprof::Error& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 2;
}
