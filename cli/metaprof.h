#pragma once
// The program `metaprof`. Data goes to stdout, messages to stderr.

namespace metaprof {

/// Runs the command that the words name. Returns the exit status (ExitCode).
int run_metaprof(int count, char** words);

}  // namespace metaprof
