#pragma once
// A zip archive, read only. Nothing is ever extracted: entries are read into memory, by name, and names are
// never used as paths. Every failure is an Error that names the file, the entry and a remedy.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace metaprof {

/// What an entry holds. No std::string, which would be filled with zeros before it is filled with the bytes: that took
/// a fiftieth of an estimate.
class EntryText {
 public:
  EntryText() = default;
  explicit EntryText(size_t size) : bytes_(std::make_unique_for_overwrite<char[]>(size)), size_(size) {}

  char* data() { return bytes_.get(); }
  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

class Archive {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0;             ///< bytes, as the directory says
    uint64_t compressed_size = 0;  ///< bytes
    uint64_t index = 0;            ///< position in the directory
  };

  /// Opens the file and reads the directory. Errors: not a file, empty, not a zip archive.
  explicit Archive(const std::string& path);
  ~Archive();

  const std::string& path() const { return path_; }
  /// In the order of the directory; names may repeat.
  const std::vector<Entry>& entries() const { return entries_; }
  /// The first entry of that name, or nullptr.
  const Entry* find(std::string_view name) const;

  /// The contents of an entry. Errors: the name occurs twice, encrypted, a compression other than stored or
  /// deflated, too large, damaged (checksum, size, offset).
  EntryText read(const Entry& entry) const;

 private:
  struct Zip;
  void check_readable(const Entry& entry) const;
  EntryText read_raw(const Entry& entry) const;
  EntryText inflated(const Entry& entry, std::string_view raw) const;
  [[noreturn]] void wrong_size(const Entry& entry, bool more) const;

  std::string path_;
  uint64_t file_size_ = 0;
  std::unique_ptr<Zip> zip_;
  std::vector<Entry> entries_;
};

}  // namespace metaprof
