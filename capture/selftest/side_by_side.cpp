#include "capture/selftest/side_by_side.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>

#include "core/error.h"
#include "core/host_memory.h"

namespace metaprof {
namespace {

constexpr auto kTick = std::chrono::milliseconds(20);
constexpr int kNotRun = 127;  // exit status, as a shell's

// In the child: becomes the program.
[[noreturn]] void become(const std::vector<char*>& words, int input, int output) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::signal(SIGXFSZ, SIG_DFL);  // which this program ignores for itself
  lift_host_memory_limit();
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(words[0], words.data());
  _exit(kNotRun);
}

pid_t start(const Job& job) {
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = open(job.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (output < 0) fail("{}: cannot be written ({})", job.output.string(), std::strerror(errno));
  std::vector<char*> words;
  words.reserve(job.words.size() + 1);
  for (const std::string& word : job.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) become(words, input, output);
  close(input);
  close(output);
  if (child < 0) fail("{}: cannot be run ({})", job.words[0], std::strerror(errno));
  return child;
}

}  // namespace

std::vector<int> run_side_by_side(const std::vector<Job>& jobs, size_t most,
                                  const std::function<void(size_t)>& ended) {
  std::vector<int> result(jobs.size(), 0);
  std::map<pid_t, size_t> running;
  size_t next = 0, done = 0;
  while (done < jobs.size()) {
    while (running.size() < most && next < jobs.size()) {
      running.emplace(start(jobs[next]), next);
      ++next;
    }
    std::this_thread::sleep_for(kTick);
    for (auto it = running.begin(); it != running.end();) {
      int status = 0;
      if (waitpid(it->first, &status, WNOHANG) != it->first) {
        ++it;
        continue;
      }
      result[it->second] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      it = running.erase(it);
      ++done;
      if (ended) ended(done);
    }
  }
  return result;
}

}  // namespace metaprof
