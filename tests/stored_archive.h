#pragma once
// Archives that tests make.

#include <zlib.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace metaprof {

/// The bytes of a zip archive of stored entries.
inline std::string stored_archive(const std::vector<std::pair<std::string, std::string>>& entries) {
  const auto number = [](uint64_t value, int bytes) {
    std::string text;
    for (; bytes > 0; --bytes, value >>= 8) text += static_cast<char>(value);
    return text;
  };
  std::string files, directory;
  for (const auto& [name, text] : entries) {
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
    // Version, flags (UTF-8), method, time, date, checksum, sizes, length of the name, no extra field.
    const std::string facts = number(20, 2) + number(0x800, 2) + number(0, 6) + number(crc, 4) +
                              number(text.size(), 4) + number(text.size(), 4) + number(name.size(), 2) +
                              number(0, 2);
    directory.append("PK\1\2").append(number(20, 2)).append(facts).append(number(0, 10));
    directory.append(number(files.size(), 4)).append(name);
    files.append("PK\3\4").append(facts).append(name).append(text);
  }
  return files + directory + "PK\5\6" + number(0, 4) + number(entries.size(), 2) + number(entries.size(), 2) +
         number(directory.size(), 4) + number(files.size(), 4) + number(0, 2);
}

}  // namespace metaprof
