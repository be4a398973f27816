#include "capture/selftest/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "capture/launch/installation.h"
#include "capture/selftest/side_by_side.h"
#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/json.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = 1 << 20;

std::string text_of(const Json& json, std::string_view key) {
  const Json value = json.find(key);
  return value ? value.string() : std::string();
}

int number_of(const Json& json, std::string_view key, int usual) {
  const Json value = json.find(key);
  return value ? static_cast<int>(value.integer()) : usual;
}

// What torch says of the card, and of a card that is known by its title the rest.
Hardware hardware_of(const Json& device) {
  Hardware hardware;
  hardware.title = device.at("name").string();
  for (const Hardware& known : known_hardware())
    if (known.title == hardware.title) hardware = known;
  if (hardware.name.empty()) {
    hardware.name = hardware.title;
    std::ranges::replace_if(
        hardware.name, [](char c) { return c == ' ' || c == ';'; }, '-');
  }
  hardware.memory = {device.at("memory").integer()};
  int capability = 0;
  device.at("capability").for_each([&](const Json& number) {
    capability = 10 * capability + static_cast<int>(number.integer());
  });
  hardware.sm = capability;
  hardware.multiprocessors = number_of(device, "multiprocessors", hardware.multiprocessors);
  hardware.threads_per_multiprocessor =
      number_of(device, "threads_per_multiprocessor", hardware.threads_per_multiprocessor);
  hardware.shared_memory_per_block =
      number_of(device, "shared_memory_per_block", static_cast<int>(hardware.shared_memory_per_block));
  return hardware;
}

// The last line: libraries may say something before it.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Machine machine_of(const std::string& python, const std::filesystem::path& folder) {
  const std::filesystem::path output = folder / "machine.txt";
  const std::string program = (recorder_folder() / "selftest" / "machine.py").string();
  const int status = run_side_by_side({{.words = {python, program}, .output = output}}, 1, {})[0];
  const std::string text = read_file(output, kMostBytes, "what the interpreter said");
  const std::string line = last_line(text);
  if (status == 127 && line.empty()) fail("--python {}: there is no such program", python);
  if (status != 0 || !line.starts_with('{'))
    fail("--python {}: is no Python that can be used: {}", python,
         line.empty() ? fmt::format("exit status {}", status) : line);
  const JsonDocument document(line, output.string());
  const Json found = document.root();
  if (const std::string problem = text_of(found, "problem"); !problem.empty())
    fail("--python {}: PyTorch cannot be used: {}", python, problem);
  Machine machine{.python = text_of(found, "python"),
                  .torch = text_of(found, "torch"),
                  .cuda = text_of(found, "cuda"),
                  .driver = text_of(found, "driver"),
                  .cudnn = 0,
                  .cudnn_library = text_of(found, "cudnn_library"),
                  .device = {}};
  if (machine.cuda.empty())
    fail("--python {}: PyTorch {} is built for the CPU only: install one that is built with CUDA", python,
         machine.torch);
  machine.cudnn = number_of(found, "cudnn", 0);
  if (const Json device = found.find("device")) machine.device = hardware_of(device);
  return machine;
}

std::string device_file_of(const Hardware& hardware) {
  nlohmann::ordered_json file;
  if (const Hardware* known = find_hardware(hardware.name)) file["like"] = known->name;
  file["type"] = "cuda";
  file["name"] = hardware.name;
  file["title"] = hardware.title;
  file["sm"] = hardware.sm;
  file["multiprocessors"] = hardware.multiprocessors;
  file["threads_per_multiprocessor"] = hardware.threads_per_multiprocessor;
  file["shared_memory_per_block"] = hardware.shared_memory_per_block;
  file["memory"] = hardware.memory.count;
  return file.dump(1) + "\n";
}

}  // namespace metaprof
