#include "capture/emulator/cudnn/helper.h"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/own_file.h"
#include "capture/emulator/machine/versions.h"

extern char** environ;

namespace metaprof::emulator::cudnn {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
// Against a helper that hangs. cuDNN is a gigabyte that may come from a slow disk.
constexpr int kMillisecondsToLoad = 300000, kMillisecondsToPlan = 60000;

// cuDNN as it came with the PyTorch of this process, else the one that the dynamic linker finds.
std::string installed_library() {
  const std::string packages = packages_folder();
  for (const char* const folder : {"/nvidia/cudnn/lib/", "/torch/lib/"})
    if (std::string file = packages + folder + kLibrary; access(file.c_str(), R_OK) == 0) return file;
  return kLibrary;
}

// The words of METAPROF_EMULATOR_CUDNN, a line each.
std::map<std::string, std::string> words() {
  std::map<std::string, std::string> out;
  const std::string& text = environment().cudnn;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size()), equals = text.find('=', from);
    if (equals < end) out[text.substr(from, equals - from)] = text.substr(equals + 1, end - equals - 1);
    from = end + 1;
  }
  for (const char* const needed : {"helper", "driver", "device"})
    if (out[needed].empty())
      refuse_to_run(std::string("METAPROF_EMULATOR_CUDNN: ") + needed + "= is missing");
  if (out["library"].empty()) out["library"] = installed_library();
  return out;
}

class Helper {
 public:
  Helper() { start(); }

  std::optional<int64_t> ask(const std::string& question) {
    if (!channel_.is_open()) return {};
    send_line(question);
    const std::string answer = receive_line(kMillisecondsToPlan);
    if (answer.empty()) give_up("the helper does not answer");
    int64_t bytes = 0;
    const auto [end, error] = std::from_chars(answer.data(), answer.data() + answer.size(), bytes);
    if (answer.empty() || error != std::errc() || bytes < 0) return {};
    return bytes;
  }

  /// Whether it was started for another process, or its channel was closed by this one.
  bool is_lost() const { return owner_ != getpid() || (started_ && !channel_.is_open()); }

 private:
  // Starts it, and waits until it is ready.
  void start() {
    auto given = words();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return say(std::strerror(errno));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    // It must see the real libraries, not the stand-ins.
    std::vector<char*> variables;
    for (char** v = environ; *v; ++v)
      if (std::strncmp(*v, "LD_PRELOAD=", 11) != 0 && std::strncmp(*v, "LD_LIBRARY_PATH=", 16) != 0)
        variables.push_back(*v);
    variables.push_back(nullptr);
    std::string program = given["helper"];
    char* arguments[] = {program.data(), given["library"].data(), given["driver"].data(), nullptr};
    pid_t child = 0;
    const int failed = posix_spawn(&child, program.c_str(), &files, nullptr, arguments, variables.data());
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    channel_.take(ends[0]);
    if (failed != 0) return give_up(program + ": " + std::strerror(failed));
    send_line(given["device"]);
    const std::string greeting = receive_line(kMillisecondsToLoad);
    constexpr size_t word = 6;  // "ready VERSION" or "error MESSAGE"
    if (!greeting.starts_with("ready "))
      return give_up(greeting.starts_with("error ") ? greeting.substr(word) : program + " does not answer");
    started_ = true;
  }

  static void say(const std::string& why) {
    std::fprintf(stderr, "metaprof emulator: cuDNN's plans are not known, their workspaces count as 0: %s\n",
                 why.c_str());
  }
  void give_up(const std::string& why) {
    say(why);
    channel_.close();
    started_ = false;
  }
  void send_line(std::string line) const {
    line += '\n';
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(channel_.number(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += size_t(n);
    }
  }
  // Empty: nothing came in time.
  std::string receive_line(int milliseconds) {
    while (received_.find('\n') == std::string::npos) {
      pollfd wait = {channel_.number(), POLLIN, 0};
      char buffer[4096];
      if (poll(&wait, 1, milliseconds) <= 0) return {};
      const ssize_t n = recv(channel_.number(), buffer, sizeof buffer, 0);
      if (n <= 0) return {};
      received_.append(buffer, size_t(n));
    }
    std::string line = received_.substr(0, received_.find('\n'));
    received_.erase(0, line.size() + 1);
    return line;
  }

  OwnFile channel_;
  bool started_ = false;  // and has not given up
  pid_t owner_ = getpid();
  std::string received_;
};

}  // namespace

std::optional<int64_t> ask_helper(const std::string& question) {
  // It ends when the channel closes, with this process. A forked process starts one of its own, and so does one that has closed all
  // files.
  static Helper* helper = nullptr;
  if (!helper || helper->is_lost()) helper = new Helper;
  return helper->ask(question);
}

}  // namespace metaprof::emulator::cudnn
