#pragma once
// Calls the stand-ins as a program would: in a process of its own, whose environment says what the machine is; by name,
// through dlopen.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace emulated {

using Environment = std::map<std::string, std::string>;

class Library {
 public:
  explicit Library(const std::string& soname)
      : handle_(dlopen((std::string(METAPROF_EMULATOR_FOLDER) + "/" + soname).c_str(), RTLD_NOW)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }

  void* find(const char* name) const { return dlsym(handle_, name); }
  void* find(const char* name, const char* version) const { return dlvsym(handle_, name, version); }

  /// Calls a function that returns an int; the arguments must have its parameters' types.
  template <class... Arguments>
  int operator()(const char* name, Arguments... arguments) const {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(find(name));
    if (!function) {
      ADD_FAILURE() << name << " is not there";
      return -1;
    }
    return function(arguments...);
  }

  /// The number so far of libcuda.so.1's own counter.
  uint64_t count(const char* what, int device = -1) const {
    return reinterpret_cast<uint64_t (*)(const char*, int)>(find("metaprof_emulator_count"))(what, device);
  }

 private:
  void* handle_;
};

struct Outcome {
  int exit_code = -1;  ///< 0: the checks in it held
  std::string errors;  ///< what it said on stderr
};

/// Runs `work` in a forked process with these variables.
template <class Work>
Outcome run(const Environment& environment, Work work) {
  std::FILE* const errors = std::tmpfile();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(errors), STDERR_FILENO);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    work();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Outcome out{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}};
  std::rewind(errors);
  for (int c; (c = std::fgetc(errors)) != EOF;) out.errors += char(c);
  std::fclose(errors);
  return out;
}

/// For checks that hold and say nothing on stderr.
template <class Work>
void check(const Environment& environment, Work work) {
  const Outcome outcome = run(environment, work);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.errors, "");
}

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// Launches a kernel of one thread.
inline int launch(const Library& runtime, void* stream) {
  return runtime("cudaLaunchKernel", static_cast<const void*>("kernel"), Dim3{}, Dim3{},
                 static_cast<void**>(nullptr), size_t(0), stream);
}

inline void* make_stream(const Library& runtime) {
  void* stream = nullptr;
  EXPECT_EQ(runtime("cudaStreamCreateWithFlags", &stream, 1U), 0);  // it does not wait for the legacy stream
  return stream;
}

inline void* make_event(const Library& runtime) {
  void* event = nullptr;
  EXPECT_EQ(runtime("cudaEventCreate", &event), 0);
  return event;
}

constexpr size_t kMiB = size_t(1) << 20;

/// An H200 with this much memory.
inline std::string h200_with(size_t bytes) {
  return "name=h200;title=NVIDIA H200;sm=90;multiprocessors=132;threads_per_multiprocessor=2048;"
         "shared_memory_per_block=232448;memory=" +
         std::to_string(bytes);
}

}  // namespace emulated
