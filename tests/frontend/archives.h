#pragma once
// Archives written by tests into the temporary folder.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/formats/archive.h"
#include "tests/stored_archive.h"

namespace metaprof {

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
