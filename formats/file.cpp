#include "formats/file.h"

#include <fmt/format.h>

#include <fstream>

#include "core/error.h"

namespace metaprof {

std::string read_file(const std::filesystem::path& path, uintmax_t most, std::string_view what) {
  const std::string name = path.string();
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) fail("{}: no such file", name);
  if (!std::filesystem::is_regular_file(status)) fail("{}: not a regular file, expected {}", name, what);
  const uintmax_t size = std::filesystem::file_size(path, code);
  if (code || size > most) fail("{}: too large for {} ({} bytes)", name, what, size);
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) fail("{}: cannot be read", name);
  return text;
}

}  // namespace metaprof
