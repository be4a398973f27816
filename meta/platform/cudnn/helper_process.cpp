#include "meta/platform/cudnn/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/host_memory.h"

extern char** environ;

namespace metaprof {
namespace {

constexpr size_t kLongestLine = 1 << 16;

// The helper must see the real libraries: within an emulated run, the stand-ins come first in these two.
std::vector<char*> real_environment() {
  const char* preloaded = std::getenv("LD_PRELOAD");
  const bool emulated = preloaded && std::strstr(preloaded, "libmetaprof-emulator");
  size_t count = 0;
  while (environ[count]) ++count;
  std::vector<char*> variables;
  variables.reserve(count + 1);
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    if (emulated && (text.starts_with("LD_PRELOAD=") || text.starts_with("LD_LIBRARY_PATH="))) continue;
    variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

HelperProcess::HelperProcess(const std::vector<std::string>& words) {
  int to[2], from[2];
  // A socket, so that sending to a process that has ended is an error and no signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) != 0) return;
  if (pipe2(from, O_CLOEXEC) != 0) {
    close(to[0]);
    close(to[1]);
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  {
    const WithoutHostMemoryLimit all;
    std::vector<char*> variables = real_environment();
    if (posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), variables.data()) != 0)
      process_ = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  close(to[1]);
  close(from[1]);
  to_ = to[0];
  from_ = from[0];
  if (process_ < 0) stop();
}

HelperProcess::~HelperProcess() { stop(); }

void HelperProcess::stop() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  to_ = from_ = -1;
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

bool HelperProcess::send(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = to_ < 0 ? -1 : ::send(to_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

std::optional<std::string> HelperProcess::receive(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  while (from_ >= 0) {
    if (const size_t at = received_.find('\n'); at != std::string::npos) {
      std::string line = received_.substr(0, at);
      received_.erase(0, at + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{from_, POLLIN, 0};
    char buffer[4096];
    ssize_t count = 0;
    if (left > 0 && poll(&wait, 1, static_cast<int>(left)) > 0) count = read(from_, buffer, sizeof buffer);
    if (count <= 0 || received_.size() > kLongestLine) {
      stop();
      return {};
    }
    received_.append(buffer, static_cast<size_t>(count));
  }
  return {};
}

}  // namespace metaprof
