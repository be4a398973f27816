#pragma once
// Programs that are kept as text (docs/reference/program.md).

#include <string>

#include "program/program.h"

namespace metaprof {

/// True if the file's name says that it is a program's text (`*.mp`).
bool is_program_file(const std::string& path);

/// Reads a program's text, plain or gzipped. A program without a name has the file's. Errors: as GzipLines and
/// parse_program; more than 256 MiB of text.
Program read_program_file(const std::string& path);

}  // namespace metaprof
