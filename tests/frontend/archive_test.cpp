#include "core/formats/archive.h"

#include <gtest/gtest.h>

#include "tests/frontend/archives.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

constexpr const char* kBase = "tests/data/fixtures/base.pt2";

std::string error_of_opening(const std::string& path) {
  return error_of([&] { Archive archive(path); });
}

// The error of reading the program of base.pt2 after its bytes were changed. Its entries are stored.
template <class Change>
std::string error_after(Change change) {
  std::string bytes = read_file(kBase);
  change(bytes);
  const TemporaryFile file("changed.pt2");
  file.write(bytes);
  return error_of([&] {
    const Archive archive(file.path());
    const auto* entry = archive.find("base/models/model.json");
    if (!entry) throw Error("no such entry");
    archive.read(*entry);
  });
}

// Where the directory's record of the program begins: 46 bytes before its name.
size_t directory_record(const std::string& bytes) { return bytes.rfind("base/models/model.json") - 46; }

void put(std::string& bytes, size_t at, uint32_t number) {
  for (int i = 0; i < 4; ++i) bytes[at + static_cast<size_t>(i)] = static_cast<char>(number >> 8 * i);
}

TEST(Archive, ReadsEntriesByName) {
  const Archive archive(kBase);
  ASSERT_TRUE(archive.find("base/archive_format"));
  EXPECT_EQ(archive.read(*archive.find("base/archive_format")).view(), "pt2");
  EXPECT_EQ(archive.read(*archive.find("base/data/weights/weight_0")).view(), "") << "weights without bytes";
  EXPECT_FALSE(archive.find("archive_format"));
}

TEST(Archive, SaysWhyAFileCannotBeOpened) {
  EXPECT_EQ(error_of_opening("tests/data/nowhere.pt2"), "tests/data/nowhere.pt2: no such file");
  EXPECT_EQ(error_of_opening("tests/data"), "tests/data: is a folder, expected a .pt2 archive");
  EXPECT_EQ(error_of_opening("/dev/null"), "/dev/null: not a regular file, expected a .pt2 archive");
  EXPECT_EQ(error_of_opening("tests/data/fixtures/not_zip.pt2"),
            "tests/data/fixtures/not_zip.pt2: not a zip archive (no end record): export again with "
            "torch.export.save");
}

TEST(Archive, SizesAreNotBelieved) {
  // Offsets in a directory record: 20 compressed size, 24 size, 42 offset of the local header.
  const auto with = [](size_t field, uint32_t number) {
    return error_after([&](std::string& bytes) { put(bytes, directory_record(bytes) + field, number); });
  };
  expect_words(with(20, 200'000'000), "size of base/models/model.json in the directory is wrong");
  expect_words(with(24, 4'294'967'280), "4294967280 bytes from 4461 in a file of");
  expect_words(with(24, 4462), "4462 bytes from 4461 in a file of");
  expect_words(with(42, 0x7fffffff), "offset in the directory is wrong");
  EXPECT_NE(with(24, 100), "no error") << "less than is there";
  EXPECT_NE(with(20, 100), "no error");
}

TEST(Archive, DamageIsNoticed) {
  expect_words(error_after([](std::string& bytes) { bytes[bytes.find("\"graph_module\"") + 3] ^= 1; }),
               "checksum");
}

TEST(Archive, DeflatedEntriesAreCheckedToo) {
  const std::string original = read_file("tests/data/models/nerf.pt2");
  const std::string name = "nerf/models/model.json";
  const size_t record = original.rfind(name) - 46, header = original.find(name) - 30;
  const size_t data = header + 30 + name.size();
  const auto with = [&](auto change) {
    std::string bytes = original;
    change(bytes);
    const TemporaryFile file("changed.pt2");
    file.write(bytes);
    return error_of([&] {
      const Archive archive(file.path());
      archive.read(*archive.find(name));
    });
  };
  const auto with_size = [&](uint32_t size) {
    return with([&](std::string& bytes) {
      put(bytes, record + 24, size);
      put(bytes, header + 22, size);
    });
  };
  EXPECT_EQ(with_size(80126), "no error");
  expect_words(with_size(80125), "holds more bytes than its size in the directory, 80125");
  expect_words(with_size(80127), "holds fewer bytes than its size in the directory, 80127");
  expect_words(
      with([&](std::string& bytes) { bytes[data] |= 6; }),  // a block of type 3, which deflate has not
      "the compressed data of nerf/models/model.json are damaged");
  expect_words(with([&](std::string& bytes) { bytes[header + 22] ^= 1; }), "cannot be read");
}

TEST(Archive, ADirectoryThatIsNotThereIsNoticed) {
  std::string bytes = read_file(kBase);
  const size_t end = bytes.rfind("PK\5\6");
  put(bytes, end + 16, 0x7fffffff);                   // offset of the directory
  bytes.replace(bytes.rfind("PK\6\7"), 4, "PK\6\0");  // and that of 64 bits
  const TemporaryFile file("changed.pt2");
  file.write(bytes);
  expect_words(error_of_opening(file.path()), "a damaged zip archive (its directory cannot be read)");
}

}  // namespace
}  // namespace metaprof
