#include "core/formats/file.h"

#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "core/error.h"

namespace metaprof {

namespace {

std::string read_standard_input(uintmax_t most, std::string_view what) {
  constexpr size_t kPiece = size_t{1} << 16;
  std::string text;
  while (std::cin) {
    const size_t before = text.size();
    text.resize(before + kPiece);
    std::cin.read(text.data() + before, static_cast<std::streamsize>(kPiece));
    text.resize(before + static_cast<size_t>(std::cin.gcount()));
    if (text.size() > most) fail("-: the standard input is too large for {} (over {} bytes)", what, most);
  }
  if (text.empty()) fail("-: the standard input is empty, expected {}", what);
  return text;
}

}  // namespace

uintmax_t size_of_file(const std::filesystem::path& path, std::string_view what) {
  const std::string name = path.string();
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) fail("{}: no such file", name);
  if (code) fail("{}: cannot be read ({})", name, code.message());
  if (std::filesystem::is_directory(status)) fail("{}: is a folder, expected {}", name, what);
  if (!std::filesystem::is_regular_file(status)) fail("{}: not a regular file, expected {}", name, what);
  const uintmax_t size = std::filesystem::file_size(path, code);
  if (code) fail("{}: cannot be read ({})", name, code.message());
  return size;
}

std::string read_file(const std::filesystem::path& path, uintmax_t most, std::string_view what) {
  const std::string name = path.string();
  if (name == "-") return read_standard_input(most, what);
  const uintmax_t size = size_of_file(path, what);
  if (size > most) fail("{}: too large for {} ({} bytes)", name, what, size);
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(size))) fail("{}: cannot be read", name);
  return text;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::symlink_status(path, code).type() != std::filesystem::file_type::not_found;
}

}  // namespace metaprof
