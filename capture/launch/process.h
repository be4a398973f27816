#pragma once
// Running another program to its end, with nothing left behind.
//
// The program shares the terminal: what it prints passes through, and Ctrl-C reaches it. While it runs, this process
// does not end of SIGINT, SIGTERM, SIGHUP and SIGQUIT: one that another process has sent is passed on, and a second one
// ends the program (SIGKILL). When it has ended, every process that it started and that still runs is ended, too, also
// one that has left its process group.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace metaprof {

struct ProcessOptions {
  std::vector<std::string> words;                  ///< the program, looked up in PATH, and its arguments
  std::map<std::string, std::string> environment;  ///< added to this process's
  double timeout = 0;                              ///< seconds after which it is ended; 0: none
  bool output_to_error = false;                    ///< what it prints goes to standard error
  bool silent = false;                             ///< what it prints is thrown away
  std::function<void()> poll = {};                 ///< called a few times a second while it runs
};

struct ProcessEnd {
  int status = 0;             ///< its exit status; 128 + the signal that ended it
  int signal = 0;             ///< that signal, or 0
  bool timed_out = false;     ///< it was ended after the timeout
  int ended_descendants = 0;  ///< processes that it had left behind
};

/// Errors: the program does not exist or cannot be run.
ProcessEnd run_process(const ProcessOptions& options);

}  // namespace metaprof
