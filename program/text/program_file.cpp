#include "program/text/program_file.h"

#include <filesystem>

#include "core/error.h"
#include "core/formats/gzip_lines.h"
#include "program/text/text.h"

namespace metaprof {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

}  // namespace

bool is_program_file(const std::string& path) { return path.ends_with(".mp"); }

Program read_program_file(const std::string& path) {
  std::string text;
  GzipLines lines(path, "the text of a program");
  for (std::string_view line; lines.next(line);) {
    if (text.size() + line.size() > kMostBytes)
      fail("{}: more than {} MiB of text, which no program has", path, kMostBytes >> 20);
    text += line;
    text += '\n';
  }
  Program program = parse_program(text, path);
  if (program.name.empty()) program.name = std::filesystem::path(path).stem().string();
  return program;
}

}  // namespace metaprof
