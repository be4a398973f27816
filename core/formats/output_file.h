#pragma once
// Files that the program writes.

#include <string>
#include <string_view>

namespace metaprof {

/// Writes a text to a file. The text is written beside the file, which then takes its name: a disk that is full, or a
/// process that is ended, leaves the file that was there before as it was. A link stays one, to a new file.
///
/// /dev/stdout and /dev/fd/N are descriptors of this process, and the text continues what was written there. Other
/// devices, and FIFOs that somebody reads, are written to as they are.
///
/// Errors, each with the path: it is a folder, nobody reads the FIFO, links lead in a circle, it cannot be written.
void write_file(const std::string& path, std::string_view text);

/// Errors: as write_file, before there is anything to write. Changes nothing.
void check_can_be_written(const std::string& path);

}  // namespace metaprof
