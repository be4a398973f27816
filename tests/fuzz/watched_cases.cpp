#include "tests/fuzz/watched_cases.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "core/error.h"

// Read by the sanitizers' libraries when a program starts. A background thread of AddressSanitizer ends a process that
// takes more memory.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the names are theirs.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:hard_rss_limit_mb=2048:max_allocation_size_mb=2048:quarantine_size_mb=32:malloc_"
         "context_size=5:"
         "detect_stack_use_after_return=0:handle_abort=1";
}
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=0"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace metaprof {
namespace {

constexpr double kMostSeconds = 10;
constexpr int kComplaint = 77;

// What both processes see.
struct Shared {
  std::atomic<uint64_t> number, accepted;
  char complaint[1000];
};

#ifndef METAPROF_ADDRESS_SANITIZER
void tell_place(int signal, siginfo_t*, void* context) {
  const auto at = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  Dl_info module{};
  dladdr(reinterpret_cast<void*>(at), &module);
  std::fprintf(stderr, "SUMMARY: signal %d at +0x%zx of %s\n", signal,
               at - reinterpret_cast<uintptr_t>(module.dli_fbase), module.dli_fname ? module.dli_fname : "?");
  _exit(kComplaint + 1);
}

void tell_place_of(int signal) {
  static char stack[1 << 16];  // the usual one may be full
  const stack_t other{.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_sigaction = tell_place;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(signal, &action, nullptr);
}
#endif

class Worker {
 public:
  Worker(Shared& shared, uint64_t begin, uint64_t end, const WatchedCases& cases)
      : shared_(shared), errors_(std::tmpfile()) {
    if (!errors_) fail("no temporary file can be made");
    shared_.number = begin;
    shared_.complaint[0] = 0;
    std::fflush(nullptr);
    process_ = fork();
    if (process_ < 0) fail("no process can be started");
    if (process_ == 0) run(end, cases);
  }
  ~Worker() { std::fclose(errors_); }
  Worker(const Worker&) = delete;

  // Until it ends; what ended it, empty: it has run all cases.
  Finding wait() {
    uint64_t number = shared_.number;
    double since = processor_seconds();
    for (int status = 0;; usleep(5000)) {
      if (waitpid(process_, &status, WNOHANG) == process_) return finding(status);
      const double now = processor_seconds();
      if (shared_.number != number) {
        number = shared_.number;
        since = now;
      } else if (now - since > kMostSeconds) {
        kill(process_, SIGKILL);
        waitpid(process_, &status, 0);
        return {number, fmt::format("a hang: no end within {} s", kMostSeconds), errors()};
      }
    }
  }

 private:
  [[noreturn]] void run(uint64_t end, const WatchedCases& cases) {
    dup2(fileno(errors_), STDERR_FILENO);
#ifndef METAPROF_ADDRESS_SANITIZER  // which takes addresses that it never uses, and says where a signal came from
    const rlimit memory{kMostMegabytes << 20, kMostMegabytes << 20};
    setrlimit(RLIMIT_AS, &memory);
    for (const int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGILL}) tell_place_of(signal);
#endif
    const rlimit core{0, 0};
    setrlimit(RLIMIT_CORE, &core);
    for (; shared_.number < end; ++shared_.number) {
      const Outcome outcome = cases.run(shared_.number);
      if (!outcome.refused) ++shared_.accepted;
      if (outcome.complaint.empty()) continue;
      std::snprintf(shared_.complaint, sizeof shared_.complaint, "%s", outcome.complaint.c_str());
      _exit(kComplaint);
    }
    _exit(0);
  }

  double processor_seconds() const {
    clockid_t clock{};
    timespec time{};
    if (clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  std::string errors() const {
    std::string text(
        static_cast<size_t>(std::max(0L, (std::fseek(errors_, 0, SEEK_END), std::ftell(errors_)))), '\0');
    std::rewind(errors_);
    text.resize(std::fread(text.data(), 1, text.size(), errors_));
    return text;
  }

  Finding finding(int status) const {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    const uint64_t number = shared_.number;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kComplaint) return {number, shared_.complaint, errors()};
    const std::string text = errors();
    return {number, summary(text, status), text};
  }

  // The innermost function of ours in a sanitizer's stack: an assertion's own line does not tell where it stands.
  static std::string place_of_abort(const std::string& text) {
    if (text.find("AddressSanitizer: ABRT") == text.npos) return "";
    const size_t ours = text.find(" in metaprof::");
    if (ours == text.npos) return "";
    return "aborted" + text.substr(ours, text.find('\n', ours) - ours);
  }

  // A sanitizer's last line, else the signal.
  static std::string summary(const std::string& text, int status) {
    if (const std::string place = place_of_abort(text); !place.empty()) return place;
    for (const std::string_view word :
         {"SUMMARY: ", "runtime error: ", "ERROR: ", "Assertion ", "terminate called"}) {
      const size_t at = text.find(word);
      if (at == text.npos) continue;
      const size_t begin = text.rfind('\n', at) + 1;
      return text.substr(begin, text.find('\n', at) - begin);
    }
    return WIFSIGNALED(status) ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                               : fmt::format("exit status {}", WEXITSTATUS(status));
  }

  Shared& shared_;
  std::FILE* errors_;
  pid_t process_ = 0;
};

}  // namespace

uint64_t watch(uint64_t begin, uint64_t end, const WatchedCases& cases) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no memory for two processes");
  Shared& shared = *new (memory) Shared();
  while (begin < end) {
    const Finding finding = Worker(shared, begin, end, cases).wait();
    if (finding.what.empty()) break;
    cases.found(finding);
    begin = finding.number + 1;
  }
  const uint64_t accepted = shared.accepted;
  munmap(memory, sizeof(Shared));
  return accepted;
}

}  // namespace metaprof
