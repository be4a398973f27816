#include "meta/platform/files/device_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/json.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytesOfProfile = 1 << 20;

template <class Integer>
Integer integer_from(const Json& value, int64_t least, int64_t most) {
  const int64_t number = value.integer();
  if (number < least || number > most)
    value.reject(fmt::format("expected a number from {} to {}", least, most));
  return static_cast<Integer>(number);
}

double rate_from(const Json& value) {
  const double rate = value.real();
  if (!(rate > 0 && rate < 1e30)) value.reject("expected a positive number per second");
  return rate;
}

Platform base_of(const Json& root) {
  const Json like = root.find("like");
  if (!like) return {};
  if (const Hardware* known = find_hardware(like.string())) return {.hardware = *known};
  like.reject("there is no such device; `metaprof devices` lists those that are known");
}

constexpr int64_t kMostNumber = 1 << 30, kMostMemory = int64_t{1} << 50;

DeviceType type_from(const Json& value) {
  const std::string type = value.string();
  if (type != "cuda" && type != "cpu") value.reject("expected \"cuda\" or \"cpu\"");
  return type == "cpu" ? DeviceType::cpu : DeviceType::cuda;
}

void read_library(Platform& platform, const Json& version, int Libraries::*library) {
  platform.libraries.*library = integer_from<int>(version, 0, kMostNumber);
  platform.libraries.of_the_machine = true;
}

// What `metaprof measure` writes: figures that estimates use, and what they were derived from, which people and other programs
// read.
struct MeasuredKey {
  std::string_view name;
  double MeasuredRates::*rate;
};
constexpr MeasuredKey kMeasuredRates[] = {{"bandwidth", &MeasuredRates::bandwidth},
                                          {"flops_f32", &MeasuredRates::flops_f32},
                                          {"flops_tf32", &MeasuredRates::flops_tf32},
                                          {"flops_f16", &MeasuredRates::flops_f16},
                                          {"flops_f64", &MeasuredRates::flops_f64}};
constexpr std::string_view kMeasuredDetails[] = {
    "date",          "driver", "driver_cuda", "cuda_runtime", "cublas",   "cudnn",        "quick", "growth",
    "granularities", "clocks", "copies",      "elementwise",  "products", "convolutions", "launch"};

MeasuredRates measured_from(const Json& object) {
  MeasuredRates measured;
  object.for_each_member([&](std::string_view name, Json value) {
    for (const MeasuredKey& key : kMeasuredRates)
      if (key.name == name) return void(measured.*key.rate = rate_from(value));
    if (name == "outside") return void(measured.outside = {integer_from<int64_t>(value, 0, kMostMemory)});
    if (std::ranges::find(kMeasuredDetails, name) == std::end(kMeasuredDetails))
      value.reject("unknown key; `metaprof measure` writes what may stand here");
  });
  return measured;
}

// What a file may say, in the order in which a message lists it.
struct Key {
  std::string_view name;
  void (*read)(Platform&, const Json&);
};
constexpr Key kKeys[] = {
    {"like", [](Platform&, const Json&) {}},
    {"name", [](Platform& p, const Json& v) { p.hardware.name = v.string(); }},
    {"title", [](Platform& p, const Json& v) { p.hardware.title = v.string(); }},
    {"type", [](Platform& p, const Json& v) { p.hardware.type = type_from(v); }},
    {"sm", [](Platform& p, const Json& v) { p.hardware.sm = integer_from<int>(v, 0, 1000); }},
    {"multiprocessors",
     [](Platform& p, const Json& v) { p.hardware.multiprocessors = integer_from<int>(v, 0, 100000); }},
    {"threads_per_multiprocessor",
     [](Platform& p, const Json& v) {
       p.hardware.threads_per_multiprocessor = integer_from<int>(v, 1, 100000);
     }},
    {"blocks_per_multiprocessor",
     [](Platform& p, const Json& v) {
       p.hardware.blocks_per_multiprocessor = integer_from<int>(v, 1, 100000);
     }},
    {"shared_memory_per_block",
     [](Platform& p, const Json& v) {
       p.hardware.shared_memory_per_block = integer_from<int64_t>(v, 0, kMostNumber);
     }},
    {"memory",
     [](Platform& p, const Json& v) { p.hardware.memory = {integer_from<int64_t>(v, 1, kMostMemory)}; }},
    {"l2_cache",
     [](Platform& p, const Json& v) { p.hardware.l2_cache = {integer_from<int64_t>(v, 1, kMostMemory)}; }},
    {"clock_khz",
     [](Platform& p, const Json& v) { p.hardware.clock_khz = integer_from<int64_t>(v, 1, kMostNumber); }},
    {"memory_clock_khz",
     [](Platform& p, const Json& v) {
       p.hardware.memory_clock_khz = integer_from<int64_t>(v, 1, kMostNumber);
     }},
    {"cudnn", [](Platform& p, const Json& v) { read_library(p, v, &Libraries::cudnn); }},
    {"cuda", [](Platform& p, const Json& v) { read_library(p, v, &Libraries::cuda); }},
    {"bandwidth", [](Platform& p, const Json& v) { p.hardware.bandwidth = rate_from(v); }},
    {"flops_f32", [](Platform& p, const Json& v) { p.hardware.flops_f32 = rate_from(v); }},
    {"flops_tf32", [](Platform& p, const Json& v) { p.hardware.flops_tf32 = rate_from(v); }},
    {"flops_f16", [](Platform& p, const Json& v) { p.hardware.flops_f16 = rate_from(v); }},
    {"flops_f64", [](Platform& p, const Json& v) { p.hardware.flops_f64 = rate_from(v); }},
    {"measured", [](Platform&, const Json& v) { measured_from(v); }},
};

void read_member(Platform& platform, std::string_view name, const Json& value) {
  for (const Key& key : kKeys)
    if (key.name == name) return key.read(platform, value);
  std::string names;
  for (const Key& key : kKeys) names += fmt::format("{}{}", names.empty() ? "" : ", ", key.name);
  value.reject("unknown key; there are " + names);
}

}  // namespace

Platform read_device_file(const std::string& path) {
  const std::string text = read_file(path, kMostBytesOfProfile, "a device profile");
  const JsonDocument document(text, path);
  const Json root = document.root();
  Platform platform = base_of(root);
  Hardware& hardware = platform.hardware;
  if (!root.find("like")) {
    root.at("type");
    root.at("memory");
  }
  if (!root.find("name")) hardware.name = std::filesystem::path(path).stem().string();
  root.for_each_member([&](std::string_view key, Json value) { read_member(platform, key, value); });
  if (hardware.title.empty()) hardware.title = hardware.name;
  return platform;
}

MeasuredRates read_measured_rates(const std::string& path) {
  const std::string text = read_file(path, kMostBytesOfProfile, "a device profile");
  const JsonDocument document(text, path);
  const Json measured = document.root().find("measured");
  return measured ? measured_from(measured) : MeasuredRates();
}

}  // namespace metaprof
