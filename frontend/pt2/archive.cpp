#include "frontend/pt2/archive.h"

#include <zip.h>

#include <filesystem>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr uint64_t kMiB = 1 << 20;
// The largest text that is read at all, and the size from which on a text must not be compressed more than
// kMaxRatio times: graphs as the framework writes them deflate by 15 to 60.
constexpr uint64_t kMaxSize = 256 * kMiB, kSuspiciousSize = 64 * kMiB, kMaxRatio = 200;

std::string message_of(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}

// Its size in bytes.
uint64_t check_is_a_file(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) fail("{}: no such file", path);
  if (std::filesystem::is_directory(status)) fail("{}: is a folder, expected a .pt2 archive", path);
  if (!std::filesystem::is_regular_file(status)) fail("{}: not a regular file", path);
  const uint64_t size = std::filesystem::file_size(path, code);
  if (code) fail("{}: cannot be read ({})", path, code.message());
  if (size == 0) fail("{}: the file is empty: export again with torch.export.save", path);
  return size;
}

}  // namespace

struct Archive::Zip {
  explicit Zip(zip_t* handle) : handle(handle) {}
  Zip(const Zip&) = delete;
  Zip& operator=(const Zip&) = delete;
  ~Zip() { zip_discard(handle); }
  zip_t* handle;
};

Archive::Archive(const std::string& path) : path_(path) {
  file_size_ = check_is_a_file(path);
  int code = 0;
  zip_t* handle = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!handle && (code == ZIP_ER_OPEN || code == ZIP_ER_READ))
    fail("{}: cannot be read ({})", path, message_of(code));
  if (code == ZIP_ER_NOZIP)
    fail("{}: not a zip archive (no end record): export again with torch.export.save", path);
  if (!handle)
    fail("{}: a damaged zip archive ({}): copy the archive or export it again", path, message_of(code));
  zip_ = std::make_unique<Zip>(handle);

  const zip_int64_t count = zip_get_num_entries(handle, 0);
  entries_.reserve(static_cast<size_t>(count));
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(handle, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW, &stat) != 0 || !stat.name)
      continue;
    entries_.push_back({stat.name, stat.size, stat.comp_size, static_cast<uint64_t>(i)});
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

  zip_stat_t stat;
  if (zip_stat_index(zip_->handle, entry.index, 0, &stat) != 0)
    fail("{}: {} has no readable directory entry: the archive is damaged", path_, entry.name);
  if (stat.encryption_method != ZIP_EM_NONE)
    fail("{}: {} is encrypted: unpack it and save it without a password", path_, entry.name);
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    fail(
        "{}: {} uses compression method {}; only stored and deflated entries can be read: repack it with zip",
        path_, entry.name, stat.comp_method);
  // Stored bytes are as many as they were, and deflate makes at most 1032 of one.
  const uint64_t most_from_one = stat.comp_method == ZIP_CM_STORE ? 1 : 1032;
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

void Archive::damaged(const Entry& entry, int code) const {
  if (code == ZIP_ER_CRC)
    fail("{}: {} does not match its checksum: copy the archive or export it again", path_, entry.name);
  if (code == ZIP_ER_ZLIB || code == ZIP_ER_COMPRESSED_DATA)
    fail("{}: the compressed data of {} are damaged: copy or export it again", path_, entry.name);
  fail(
      "{}: {} cannot be read, its size or offset in the directory is wrong ({}): copy the archive or export "
      "it again",
      path_, entry.name, message_of(code));
}

std::string Archive::read(const Entry& entry) const {
  check_readable(entry);
  zip_file_t* file = zip_fopen_index(zip_->handle, entry.index, 0);
  if (!file) damaged(entry, zip_error_code_zip(zip_get_error(zip_->handle)));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closer(file, &zip_fclose);

  // One byte more than announced: a stream that goes on is damaged, and the checksum is only compared when
  // the end of the stream has been seen.
  std::string text;
  text.resize(entry.size + 1);
  uint64_t filled = 0;
  while (filled < text.size()) {
    const zip_int64_t got = zip_fread(file, text.data() + filled, text.size() - filled);
    if (got < 0) damaged(entry, zip_error_code_zip(zip_file_get_error(file)));
    if (got == 0) break;
    filled += static_cast<uint64_t>(got);
  }
  if (filled != entry.size)
    fail(
        "{}: {} holds {} bytes than its size in the directory, {}: the archive is damaged; copy or export it "
        "again",
        path_, entry.name, filled > entry.size ? "more" : "fewer", entry.size);
  text.resize(entry.size);
  return text;
}

}  // namespace metaprof
