#pragma once
// Archives written by tests into the temporary folder.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "frontend/pt2/archive.h"

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

/// A file that is gone at the end of its scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(testing::TempDir() + "metaprof_" + std::to_string(getpid()) + "_" + name) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }
  void write(std::string_view bytes) const {
    std::filesystem::remove(path_);  // cheaper than writing over it
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  /// As a zip archive of stored entries.
  void write_archive(const std::vector<std::pair<std::string, std::string>>& entries) const {
    write(stored_archive(entries));
  }

 private:
  std::string path_;
};

/// The program of an archive, as text.
inline std::string program_text(const std::string& path) {
  const Archive archive(path);
  for (const Archive::Entry& entry : archive.entries())
    if (entry.name.ends_with("models/model.json")) return std::string(archive.read(entry).view());
  ADD_FAILURE() << "no program in " << path;
  return {};
}

/// What the action's Error says.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_words(const std::string& text, std::string_view words) {
  EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: " << text;
}

}  // namespace metaprof
