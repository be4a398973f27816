#pragma once
// Archives written by tests into the temporary folder.

#include <gtest/gtest.h>
#include <zip.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "frontend/archive.h"
#include "meta/core/error.h"

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
    std::filesystem::remove(path_);
    zip_t* zip = zip_open(path_.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    ASSERT_TRUE(zip) << path_;
    for (const auto& [name, text] : entries) {
      zip_source_t* source = zip_source_buffer(zip, text.data(), text.size(), 0);
      const auto index = zip_file_add(zip, name.c_str(), source, ZIP_FL_ENC_UTF_8);
      ASSERT_GE(index, 0) << name;
      zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
    }
    ASSERT_EQ(zip_close(zip), 0) << path_;
  }

 private:
  std::string path_;
};

/// The program of an archive, as text.
inline std::string program_text(const std::string& path) {
  const Archive archive(path);
  for (const Archive::Entry& entry : archive.entries())
    if (entry.name.ends_with("models/model.json")) return archive.read(entry);
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
