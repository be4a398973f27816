#include "capture/launch/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/host_memory.h"

namespace metaprof {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::milliseconds(20);
constexpr auto kPollInterval = std::chrono::milliseconds(250);
constexpr auto kGrace = std::chrono::seconds(3);  // between the request to end and the end

// Of two signals in such a time the second is the same request: `timeout` sends one to the process and one to its group.
constexpr auto kOneRequest = std::chrono::milliseconds(200);

volatile sig_atomic_t received = 0;  // the last signal that is to be passed on to the program; 0: none

// A signal of the terminal (Ctrl-C) comes from the kernel and reaches the program by itself; one that a process has sent
// reached this process alone.
void receive(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code != SI_KERNEL) received = signal;
}

// How signals are treated while the program runs; undone when it has ended.
class Signals {
 public:
  Signals() {
    struct sigaction action = {};
    action.sa_sigaction = receive;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    received = 0;
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Signals() { restore(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  void restore() const {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
  std::array<struct sigaction, 4> before_ = {};
};

void throw_output_away() {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0) return;
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
}

// In the child: becomes the program, or tells the parent through the pipe why it cannot.
[[noreturn]] void become(const ProcessOptions& options, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGXFSZ, SIG_DFL);  // which this program ignores for itself
  lift_host_memory_limit();
  if (options.output_to_error) dup2(STDERR_FILENO, STDOUT_FILENO);
  if (options.silent) throw_output_away();
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  words.reserve(options.words.size() + 1);
  for (const std::string& word : options.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int error = errno;
  (void)!write(failure, &error, sizeof error);
  _exit(127);
}

pid_t start(const ProcessOptions& options, const Signals& signals) {
  std::array<int, 2> pipe_ends = {};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    fail("{}: cannot be run ({})", options.words[0], std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail("{}: cannot be run ({})", options.words[0], std::strerror(errno));
  if (child == 0) {
    signals.restore();
    become(options, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  int error = 0;
  const ssize_t count = read(pipe_ends[0], &error, sizeof error);
  close(pipe_ends[0]);
  if (count != sizeof error) return child;
  waitpid(child, nullptr, 0);
  if (error == ENOENT) fail("{}: there is no such program", options.words[0]);
  fail("{}: cannot be run ({})", options.words[0], std::strerror(error));
}

// Processes whose parent is this one. With the subreaper's role these are all descendants whose own parents
// have ended.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr != name.data() + name.size())
      continue;
    std::ifstream file(entry.path() / "stat");
    // By lines: a process may end before its file is read, and what reads streams by characters throws then.
    std::string stat;
    for (std::string line; std::getline(file, line);) stat += line + '\n';
    const size_t end = stat.rfind(')');  // the program's name may have blanks and brackets
    if (end == stat.npos || end + 4 >= stat.size()) continue;
    if (std::strtol(stat.c_str() + end + 4, nullptr, 10) == getpid()) found.push_back(pid);
  }
  return found;
}

void reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

// Ends what the program has left: asks first, then does not ask. Processes that end by themselves meanwhile
// (workers that notice that their parent is gone) do not count.
int end_descendants() {
  int count = 0;
  std::this_thread::sleep_for(kTick);
  reap();
  for (const auto& [signal, patience] :
       {std::pair(0, std::chrono::seconds(1)), std::pair(SIGTERM, kGrace), std::pair(SIGKILL, kGrace)}) {
    const auto until = Clock::now() + patience;
    for (std::vector<pid_t> left = children(); !left.empty() && Clock::now() < until; left = children()) {
      if (signal == SIGTERM) count = std::max(count, static_cast<int>(left.size()));
      if (signal != 0)
        for (const pid_t pid : left) kill(pid, signal);
      std::this_thread::sleep_for(kTick);
      reap();
    }
  }
  return count;
}

// What this process was asked to pass on: the first signal as it is; a later one ends the program, which may ignore it.
class PassedSignal {
 public:
  void pass_on(pid_t child, int signal, Clock::time_point now) {
    if (signal_ == signal && now - since_ < kOneRequest) return;
    kill(child, signal_ == 0 || now - since_ < kOneRequest ? signal : SIGKILL);
    if (signal_ == 0) since_ = now;
    signal_ = signal;
  }

 private:
  int signal_ = 0;  // the last; 0: none
  Clock::time_point since_;
};

}  // namespace

ProcessEnd run_process(const ProcessOptions& options) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const Signals signals;
  const pid_t child = start(options, signals);
  const auto begin = Clock::now();
  auto polled = begin;
  std::optional<Clock::time_point> ending;
  PassedSignal request;
  ProcessEnd end;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    std::this_thread::sleep_for(kTick);
    const auto now = Clock::now();
    if (received != 0) request.pass_on(child, std::exchange(received, 0), now);
    if (options.timeout > 0 && !ending && now - begin > std::chrono::duration<double>(options.timeout)) {
      end.timed_out = true;
      ending = now;
      kill(child, SIGTERM);
    }
    if (ending && now - *ending > kGrace) kill(child, SIGKILL);
    if (options.poll && now - polled > kPollInterval) {
      polled = now;
      options.poll();
    }
  }
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.status = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status);
  end.ended_descendants = end_descendants();
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  return end;
}

}  // namespace metaprof
