#include "capture/emulator/machine/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string_view>

namespace metaprof::emulator {
namespace {

constexpr const char* kH200 =
    "name=h200;title=NVIDIA H200;sm=90;multiprocessors=132;threads_per_multiprocessor=2048;"
    "shared_memory_per_block=232448;memory=150121480192;l2_cache=62914560;memory_bus_bits=6144";
constexpr int kMostDevices = 16;

[[noreturn]] void wrong(const std::string& what) { throw std::invalid_argument(what); }

size_t number(const std::string& what, std::string_view text, size_t least, size_t most) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    wrong(what + " is " + std::string(text) + ", but must be a number from " + std::to_string(least) +
          " to " + std::to_string(most));
  return value;
}

// What NVIDIA's programming guide says about a compute capability (table "Technical Specifications per Compute
// Capability"); the last fields vary among cards of one capability: those of a data centre's card.
struct Capability {
  int sm, blocks, l2_cache, bus_bits, clock_khz, memory_clock_khz;
};
constexpr Capability kCapabilities[] = {
    {120, 24, 100663296, 512, 2407000, 14001000}, {100, 32, 132644864, 8192, 1965000, 3996000},
    {90, 32, 52428800, 5120, 1980000, 3201000},   {89, 24, 75497472, 384, 2520000, 10501000},
    {86, 16, 6291456, 384, 1740000, 7251000},     {80, 32, 41943040, 5120, 1410000, 1593000},
    {75, 16, 4194304, 256, 1590000, 5001000},     {70, 32, 6291456, 4096, 1530000, 877000},
};

void complete(Description& device) {
  const Capability* facts = &kCapabilities[std::size(kCapabilities) - 1];
  for (const Capability& row : kCapabilities)
    if (row.sm <= device.sm) {
      facts = &row;
      break;
    }
  const auto otherwise = [](int& field, int value) {
    if (field == 0) field = value;
  };
  otherwise(device.blocks_per_multiprocessor, facts->blocks);
  otherwise(device.l2_cache, facts->l2_cache);
  otherwise(device.memory_bus_bits, facts->bus_bits);
  otherwise(device.clock_khz, facts->clock_khz);
  otherwise(device.memory_clock_khz, facts->memory_clock_khz);
  // From 8.0 on, 1 KiB of each block's shared memory is the system's.
  if (device.shared_memory_per_multiprocessor == 0)
    device.shared_memory_per_multiprocessor = device.shared_memory_per_block + (device.sm >= 80 ? 1024 : 0);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Environment read_environment() {
  Environment out;
  const std::string words = variable("METAPROF_EMULATOR_DEVICE");
  try {
    out.device = parse_description(words.empty() ? kH200 : words);
  } catch (const std::invalid_argument& error) {
    wrong(std::string("METAPROF_EMULATOR_DEVICE: ") + error.what());
  }
  if (const std::string gpus = variable("METAPROF_EMULATOR_GPUS"); !gpus.empty())
    out.device_count = int(number("METAPROF_EMULATOR_GPUS", gpus, 1, kMostDevices));
  if (const std::string memory = variable("METAPROF_EMULATOR_MEMORY"); !memory.empty())
    out.device.memory = number("METAPROF_EMULATOR_MEMORY", memory, 1, size_t(1) << 42);
  if (const std::string context = variable("METAPROF_EMULATOR_CONTEXT"); !context.empty())
    out.context = number("METAPROF_EMULATOR_CONTEXT", context, 0, out.device.memory);
  out.log_folder = variable("METAPROF_EMULATOR_LOG");
  struct stat status = {};
  if (!out.log_folder.empty() && (stat(out.log_folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)))
    wrong("METAPROF_EMULATOR_LOG: " + out.log_folder + " is not a folder");
  if (const std::string clock = variable("METAPROF_EMULATOR_CLOCK"); clock == "late")
    out.clock = Clock::late;
  else if (clock == "expected")
    out.clock = Clock::expected;
  else if (!clock.empty() && clock != "at-once")
    wrong("METAPROF_EMULATOR_CLOCK is " + clock + ", but must be at-once, expected or late");
  out.cudnn = variable("METAPROF_EMULATOR_CUDNN");
  return out;
}

}  // namespace

Description parse_description(const std::string& words) {
  std::map<std::string, std::string, std::less<>> given;
  for (size_t from = 0; from < words.size();) {
    const size_t end = std::min(words.find(';', from), words.size()), equals = words.find('=', from);
    if (equals >= end) wrong("'" + words.substr(from, end - from) + "' is not key=value");
    given[words.substr(from, equals - from)] = words.substr(equals + 1, end - equals - 1);
    from = end + 1;
  }
  Description out;
  const auto take = [&given](const char* key, bool needed) {
    const auto found = given.find(key);
    if (found == given.end() && needed) wrong(std::string(key) + " is missing");
    return found == given.end() ? std::string() : given.extract(found).mapped();
  };
  const auto take_number = [&](const char* key, auto& field, size_t least, size_t most, bool needed = false) {
    const std::string text = take(key, needed);
    if (!text.empty() || needed) field = std::decay_t<decltype(field)>(number(key, text, least, most));
  };
  constexpr size_t most_int = 2147483647, most_memory = size_t(1)
                                                        << 42;  // the address space of a device: 4 TiB
  out.name = take("name", true);
  out.title = take("title", true);
  take_number("sm", out.sm, 50, 999, true);
  take_number("multiprocessors", out.multiprocessors, 1, 100000, true);
  take_number("threads_per_multiprocessor", out.threads_per_multiprocessor, 32, 65536, true);
  take_number("shared_memory_per_block", out.shared_memory_per_block, 1024, most_int, true);
  take_number("memory", out.memory, 1, most_memory, true);
  take_number("blocks_per_multiprocessor", out.blocks_per_multiprocessor, 1, 1024);
  take_number("shared_memory_per_multiprocessor", out.shared_memory_per_multiprocessor, 1024, most_int);
  take_number("registers_per_multiprocessor", out.registers_per_multiprocessor, 1024, most_int);
  take_number("l2_cache", out.l2_cache, 1, most_int);
  take_number("memory_bus_bits", out.memory_bus_bits, 1, most_int);
  take_number("clock_khz", out.clock_khz, 1, most_int);
  take_number("memory_clock_khz", out.memory_clock_khz, 1, most_int);
  if (!given.empty()) wrong("unknown key " + given.begin()->first);
  complete(out);
  return out;
}

const Environment& environment() {
  static const Environment* const kEnvironment = [] {
    try {
      return new Environment(read_environment());
    } catch (const std::invalid_argument& error) {
      refuse_to_run(error.what());
    }
  }();
  return *kEnvironment;
}

namespace {

int device_of_number(std::string_view word, int count) {
  int device = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), device);
  return error == std::errc() && end == word.data() + word.size() && device < count ? device : -1;
}

// "GPU-6d65": the only device whose name begins so.
int device_of_name(std::string_view word, int count) {
  int found = -1;
  for (int device = 0; device < count; ++device) {
    if (!device_name(device).starts_with(word)) continue;
    if (found >= 0) return -1;
    found = device;
  }
  return found;
}

}  // namespace

std::string device_name(int device) {
  char text[41];
  std::snprintf(text, sizeof text, "GPU-6d657461-7072-6f66-2d64-6576696365%02x", unsigned(device));
  return text;
}

std::vector<int> visible_devices(const char* value, int count) {
  std::vector<int> out;
  if (!value) {
    for (int i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const int device = word.starts_with("GPU-") ? device_of_name(word, count) : device_of_number(word, count);
    if (device < 0) break;
    out.push_back(device);
  }
  return out;
}

void refuse_to_run(const std::string& message) {
  std::fflush(nullptr);
  const std::string line = "metaprof emulator: " + message + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(2);
}

}  // namespace metaprof::emulator
