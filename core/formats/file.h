#pragma once
// A whole file as a text.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace metaprof {

/// The bytes of a regular file; whoever opens something else may wait for ever, or read without an end. `what`: "a
/// device profile", for messages. Errors, each with the path: there is no such file, links lead in a circle, it is a
/// folder, a FIFO or a device.
uintmax_t size_of_file(const std::filesystem::path& path, std::string_view what);

/// The file "-" is the standard input, to its end. `most`: bytes. Errors, each with the path: as size_of_file; it is too
/// large, it cannot be read, the standard input is empty.
std::string read_file(const std::filesystem::path& path, uintmax_t most, std::string_view what);

/// Whether anything has this name, be it a link that leads nowhere. Never an error.
bool is_there(const std::filesystem::path& path);

}  // namespace metaprof
