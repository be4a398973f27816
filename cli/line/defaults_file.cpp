#include "cli/line/defaults_file.h"

#include <cstdlib>
#include <filesystem>

namespace metaprof {
namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

std::string defaults_file() {
  if (const std::string named = variable("METAPROF_CONFIG"); !named.empty())
    return named == "/dev/null" ? "" : named;
  std::error_code code;
  if (std::filesystem::is_regular_file("metaprof.toml", code)) return "metaprof.toml";
  std::string folder = variable("XDG_CONFIG_HOME");
  if (folder.empty() && !variable("HOME").empty()) folder = variable("HOME") + "/.config";
  const std::string file = folder + "/metaprof/config.toml";
  return !folder.empty() && std::filesystem::is_regular_file(file, code) ? file : "";
}

}  // namespace metaprof
