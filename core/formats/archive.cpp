#include "core/formats/archive.h"

#include <libdeflate.h>
#include <minizip/unzip.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/error.h"
#include "core/formats/file.h"

namespace metaprof {
namespace {

constexpr uint64_t kMiB = 1 << 20;
// The largest text that is read at all, and the size from which on a text must not be compressed more than
// kMaxRatio times: graphs as the framework writes them deflate by 15 to 60.
constexpr uint64_t kMaxSize = 256 * kMiB, kSuspiciousSize = 64 * kMiB, kMaxRatio = 200;

constexpr uLong kStored = 0, kDeflated = Z_DEFLATED, kEncrypted = 1;  // methods; a bit of the flags

// How many entries the record says that ends an archive, APPNOTE 4.3.16: 22 bytes and a comment, up to the end of the
// file. Nothing: there is none. (minizip finds directories of 64 bits without it.)
std::optional<size_t> entries_by_end_record(const std::string& path, uint64_t file_size) {
  constexpr size_t kFixed = 22, kLongestComment = 0xFFFF;
  std::string tail(std::min<uint64_t>(file_size, kFixed + kLongestComment), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be read ({})", path, std::generic_category().message(errno));
  file.seekg(static_cast<std::streamoff>(file_size - tail.size()));
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  const auto number_at = [&](size_t at) {
    return size_t{static_cast<uint8_t>(tail[at])} | size_t{static_cast<uint8_t>(tail[at + 1])} << 8;
  };
  for (size_t at = tail.size() < kFixed ? 0 : tail.size() - kFixed + 1; at-- > 0;)
    if (tail.compare(at, 4, "PK\5\6") == 0 && at + kFixed + number_at(at + 20) == tail.size())
      return number_at(at + 10);
  return std::nullopt;
}

unz_file_info64 facts_of(unzFile file, std::string* name = nullptr) {
  unz_file_info64 facts;
  if (unzGetCurrentFileInfo64(file, &facts, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) return {};
  if (name) {
    name->resize(facts.size_filename);
    unzGetCurrentFileInfo64(file, nullptr, name->data(), facts.size_filename, nullptr, 0, nullptr, 0);
  }
  return facts;
}

// Its size in bytes.
uint64_t check_is_an_archive(const std::string& path) {
  const uint64_t size = size_of_file(path, "a .pt2 archive");
  if (size == 0) fail("{}: the file is empty: export again with torch.export.save", path);
  return size;
}

}  // namespace

struct Archive::Zip {
  explicit Zip(unzFile file) : file(file) {}
  Zip(const Zip&) = delete;
  Zip& operator=(const Zip&) = delete;
  ~Zip() { unzClose(file); }
  unzFile file;
  std::vector<unz64_file_pos> positions;  // in the directory, by entry
};

Archive::Archive(const std::string& path) : path_(path) {
  file_size_ = check_is_an_archive(path);
  const std::optional<size_t> entries = entries_by_end_record(path, file_size_);
  if (!entries) fail("{}: not a zip archive (no end record): export again with torch.export.save", path);
  if (*entries == 0) return;  // which minizip takes for damaged
  unzFile file = unzOpen64(path.c_str());
  if (!file)
    fail("{}: a damaged zip archive (its directory cannot be read): copy the archive or export it again",
         path);
  zip_ = std::make_unique<Zip>(file);

  for (int code = unzGoToFirstFile(file); code == UNZ_OK; code = unzGoToNextFile(file)) {
    Entry entry;
    entry.index = entries_.size();
    const unz_file_info64 facts = facts_of(file, &entry.name);
    entry.size = facts.uncompressed_size;
    entry.compressed_size = facts.compressed_size;
    unzGetFilePos64(file, &zip_->positions.emplace_back());
    entries_.push_back(std::move(entry));
  }
}

Archive::~Archive() = default;

const Archive::Entry* Archive::find(std::string_view name) const {
  for (const Entry& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}

void Archive::check_readable(const Entry& entry) const {
  for (const Entry& other : entries_)
    if (other.name == entry.name && other.index != entry.index)
      fail("{}: the archive holds {} twice: export again", path_, entry.name);

  if (unzGoToFilePos64(zip_->file, &zip_->positions[entry.index]) != UNZ_OK)
    fail("{}: {} has no readable directory entry: the archive is damaged", path_, entry.name);
  const unz_file_info64 facts = facts_of(zip_->file);
  if (facts.flag & kEncrypted)
    fail("{}: {} is encrypted: unpack it and save it without a password", path_, entry.name);
  if (facts.compression_method != kStored && facts.compression_method != kDeflated)
    fail(
        "{}: {} uses compression method {}; only stored and deflated entries can be read: repack it with zip",
        path_, entry.name, facts.compression_method);
  // Stored bytes are as many as they were, and deflate makes at most 1032 of one.
  const uint64_t most_from_one = facts.compression_method == kStored ? 1 : 1032;
  if (entry.compressed_size > file_size_ || entry.size > entry.compressed_size * most_from_one)
    fail(
        "{}: the size of {} in the directory is wrong, {} bytes from {} in a file of {}: copy the archive or "
        "export it again",
        path_, entry.name, entry.size, entry.compressed_size, file_size_);
  if (entry.size > kMaxSize ||
      (entry.size > kSuspiciousSize && entry.size / kMaxRatio > entry.compressed_size))
    fail(
        "{}: {} is too large to be a graph: {} bytes from {} compressed ones (limits: {} MiB; {}:1 above {} "
        "MiB)",
        path_, entry.name, entry.size, entry.compressed_size, kMaxSize / kMiB, kMaxRatio,
        kSuspiciousSize / kMiB);
}

// As it is in the file. The entry is the current one.
EntryText Archive::read_raw(const Entry& entry) const {
  EntryText bytes(entry.compressed_size);
  uint64_t filled = 0;
  int method = 0, level = 0;
  if (unzOpenCurrentFile2(zip_->file, &method, &level, 1) == UNZ_OK) {
    while (filled < bytes.size()) {
      const auto wanted = static_cast<unsigned>(std::min<uint64_t>(bytes.size() - filled, 1 << 30));
      const int got = unzReadCurrentFile(zip_->file, bytes.data() + filled, wanted);
      if (got <= 0) break;
      filled += static_cast<uint64_t>(got);
    }
    unzCloseCurrentFile(zip_->file);
    if (filled == bytes.size()) return bytes;
  }
  fail(
      "{}: {} cannot be read, its size or offset in the directory is wrong: copy the archive or export it "
      "again",
      path_, entry.name);
}

void Archive::wrong_size(const Entry& entry, bool more) const {
  fail(
      "{}: {} holds {} bytes than its size in the directory, {}: the archive is damaged; copy or export it "
      "again",
      path_, entry.name, more ? "more" : "fewer", entry.size);
}

EntryText Archive::inflated(const Entry& entry, std::string_view raw) const {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  EntryText text(entry.size);
  size_t made = 0;
  const libdeflate_result result = libdeflate_deflate_decompress(decompressor.get(), raw.data(), raw.size(),
                                                                 text.data(), text.size(), &made);
  if (result == LIBDEFLATE_BAD_DATA)
    fail("{}: the compressed data of {} are damaged: copy or export it again", path_, entry.name);
  if (result != LIBDEFLATE_SUCCESS || made != text.size()) wrong_size(entry, result != LIBDEFLATE_SUCCESS);
  return text;
}

EntryText Archive::read(const Entry& entry) const {
  check_readable(entry);
  const unz_file_info64 facts = facts_of(zip_->file);
  EntryText text = read_raw(entry);
  if (facts.compression_method == kDeflated) text = inflated(entry, text.view());
  if (text.size() != entry.size) wrong_size(entry, text.size() > entry.size);
  if (libdeflate_crc32(0, text.view().data(), text.size()) != facts.crc)
    fail("{}: {} does not match its checksum: copy the archive or export it again", path_, entry.name);
  return text;
}

}  // namespace metaprof
