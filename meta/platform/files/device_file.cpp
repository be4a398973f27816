#include "meta/platform/files/device_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "formats/file.h"
#include "formats/json.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = 1 << 20;

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

DeviceProfile base_of(const Json& root) {
  const Json like = root.find("like");
  if (!like) return {};
  if (const DeviceProfile* profile = find_device(like.string())) return *profile;
  std::string names;
  for (const DeviceProfile& known : device_profiles()) names += (names.empty() ? "" : ", ") + known.name;
  like.reject(fmt::format("there is no such device; there are {}", names));
}

void read_member(DeviceProfile& profile, std::string_view key, const Json& value) {
  constexpr int64_t kMostNumber = 1 << 30, kMostMemory = int64_t{1} << 50;
  if (key == "like") return;
  if (key == "name")
    profile.name = value.string();
  else if (key == "title")
    profile.title = value.string();
  else if (key == "type") {
    const std::string type = value.string();
    if (type != "cuda" && type != "cpu") value.reject("expected \"cuda\" or \"cpu\"");
    profile.type = type == "cpu" ? DeviceType::cpu : DeviceType::cuda;
  } else if (key == "sm")
    profile.sm = integer_from<int>(value, 0, 1000);
  else if (key == "multiprocessors")
    profile.multiprocessors = integer_from<int>(value, 0, 100000);
  else if (key == "threads_per_multiprocessor")
    profile.threads_per_multiprocessor = integer_from<int>(value, 1, 100000);
  else if (key == "shared_memory_per_block")
    profile.shared_memory_per_block = integer_from<int64_t>(value, 0, kMostNumber);
  else if (key == "memory")
    profile.memory = {integer_from<int64_t>(value, 1, kMostMemory)};
  else if (key == "cudnn")
    profile.cudnn = integer_from<int>(value, 0, kMostNumber);
  else if (key == "cuda")
    profile.cuda = integer_from<int>(value, 0, kMostNumber);
  else if (key == "bandwidth")
    profile.bandwidth = rate_from(value);
  else if (key == "flops_f32")
    profile.flops_f32 = rate_from(value);
  else if (key == "flops_tf32")
    profile.flops_tf32 = rate_from(value);
  else if (key == "flops_f16")
    profile.flops_f16 = rate_from(value);
  else if (key == "flops_f64")
    profile.flops_f64 = rate_from(value);
  else
    value.reject(
        "unknown key; there are like, name, title, type, sm, multiprocessors, threads_per_multiprocessor, "
        "shared_memory_per_block, memory, cudnn, cuda, bandwidth, flops_f32, flops_tf32, flops_f16, "
        "flops_f64");
}

}  // namespace

DeviceProfile read_device_file(const std::string& path) {
  const std::string text = read_file(path, kMostBytes, "a device profile");
  const JsonDocument document(text, path);
  const Json root = document.root();
  DeviceProfile profile = base_of(root);
  if (!root.find("like")) {
    root.at("type");
    root.at("memory");
  }
  if (!root.find("name")) profile.name = std::filesystem::path(path).stem().string();
  root.for_each_member([&](std::string_view key, Json value) { read_member(profile, key, value); });
  if (profile.title.empty()) profile.title = profile.name;
  return profile;
}

}  // namespace metaprof
