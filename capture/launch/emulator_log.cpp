#include "capture/launch/emulator_log.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace metaprof {

EmulatorLog read_emulator_log(const std::filesystem::path& file) {
  EmulatorLog log;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line) && !in.eof();) {
    std::istringstream words(line);
    std::string time, what, first, second;
    words >> time >> what >> first >> second;
    if (what == "plan") ++(second == "cudnn" ? log.planned : log.unplanned);
    if (what == "communicator") ++log.communicators;
    if (what == "missing") log.missing.push_back(fmt::format("{} {}", first, second));
  }
  return log;
}

}  // namespace metaprof
