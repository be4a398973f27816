#include "capture/emulator/machine/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/own_file.h"

namespace metaprof::emulator {
namespace {

// The file of this process; -1: there is none. A forked process starts a file of its own. One that the program has closed is
// opened again, if it is still there.
int log_file() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static auto* const kFile = new OwnFile;  // what is freed at the end of the process is still logged
  const std::string& folder = environment().log_folder;
  if (folder.empty()) return -1;
  const std::lock_guard lock(mutex);
  const bool new_process = owner != getpid();
  if (!new_process && kFile->is_open()) return kFile->number();
  owner = getpid();
  const std::string path = folder + "/" + std::to_string(owner) + ".log";
  kFile->take(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (new_process && !kFile->is_open()) refuse_to_run("METAPROF_EMULATOR_LOG: cannot write " + path);
  if (new_process) dprintf(kFile->number(), "emulator 1 %d %d\n", int(owner), int(getppid()));
  return kFile->number();
}

void write_line(const std::string& text) {
  const int file = log_file();
  if (file < 0) return;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string line = std::to_string(int64_t(now.tv_sec) * 1000000000 + now.tv_nsec) + " " + text + "\n";
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
}

std::string hexadecimal(uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, address);
  return text;
}

void write_memory(char sign, int device, uintptr_t address, size_t bytes, const char* function) {
  write_line(std::string(1, sign) + " " + std::to_string(device) + " " + hexadecimal(address) + " " +
             std::to_string(bytes) + " " + function);
}

}  // namespace

void log_missing(const char* library, const char* function) {
  write_line(std::string("missing ") + library + " " + function);
}
void log_device(int device, size_t bytes) {
  write_line("device " + std::to_string(device) + " " + std::to_string(bytes));
}
void log_taken(int device, uintptr_t address, size_t bytes, const char* function) {
  write_memory('+', device, address, bytes, function);
}
void log_given_back(int device, uintptr_t address, size_t bytes, const char* function) {
  write_memory('-', device, address, bytes, function);
}
void log_out_of_memory(int device, size_t bytes, const char* function) {
  write_line("oom " + std::to_string(device) + " " + std::to_string(bytes) + " " + function);
}
void log_plan(int64_t bytes, const char* source, const std::string& question) {
  write_line("plan " + std::to_string(bytes) + " " + source + " " + question);
}
void log_communicator(int rank, int ranks) {
  write_line("communicator " + std::to_string(rank) + " " + std::to_string(ranks));
}

}  // namespace metaprof::emulator
