#pragma once
// A process that answers lines with lines.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace metaprof {

class HelperProcess {
 public:
  /// Starts a program (words[0] is its file). It dies with this object.
  explicit HelperProcess(const std::vector<std::string>& words);
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  bool running() const { return process_ > 0; }
  /// Sends a line. False if nobody reads it.
  bool send(const std::string& line);
  /// The next line; nothing if it does not come in time or the process has ended, which also stops it.
  std::optional<std::string> receive(double seconds);
  void stop();

 private:
  pid_t process_ = -1;
  int to_ = -1, from_ = -1;
  std::string received_;
};

}  // namespace metaprof
