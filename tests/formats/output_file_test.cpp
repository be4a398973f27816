// Files are written whole or not at all.

#include "core/formats/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/gzip_text.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;

// While it lives, no file grows beyond so many bytes, which stands for a disk that is full.
class FilesOfAtMost {
 public:
  explicit FilesOfAtMost(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FilesOfAtMost() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

class OutputFile : public testing::Test {
 protected:
  OutputFile() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~OutputFile() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const { return read_file(folder_ / name, 1 << 20, "a text"); }
  std::string error_of_writing(const std::string& name, const std::string& text = "new") const {
    return error_of([&] { write_file(path(name), text); });
  }
  // Without the folder.
  template <class Function>
  std::string error_of(const Function& function) const {
    try {
      function();
    } catch (const Error& error) {
      std::string text = error.what();
      if (const size_t at = text.find(folder_.string() + "/"); at != text.npos)
        text.erase(at, folder_.string().size() + 1);
      return text;
    }
    return "no error";
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / ("metaprof_output_" + std::to_string(getpid()));
};

TEST_F(OutputFile, IsNewOrComesInPlaceOfTheEarlier) {
  write_file(path("a"), "first");
  EXPECT_EQ(content("a"), "first");
  write_file(path("a"), "2");
  EXPECT_EQ(content("a"), "2");
  EXPECT_EQ(files(), 1u);
  write_file(path(std::string(255, 'n')), "the longest name");
}

TEST_F(OutputFile, WhatCannotBeWrittenWholeLeavesTheEarlier) {
  write_file(path("a"), "first");
  {
    const FilesOfAtMost limit(1000);
    EXPECT_EQ(error_of_writing("a", std::string(1001, 'x')), "a: cannot be written (File too large)");
    EXPECT_EQ(error_of_writing("b", std::string(1001, 'x')), "b: cannot be written (File too large)");
  }
  EXPECT_EQ(content("a"), "first");
  EXPECT_EQ(files(), 1u) << "nothing else is left";
}

TEST_F(OutputFile, KeepsRightsAndLinks) {
  write_file(path("a"), "first");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a", path("link"));
  fs::create_symlink("made", path("to_none"));
  write_file(path("link"), "second");
  write_file(path("to_none"), "third");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("to_none")));
  EXPECT_EQ(content("a"), "second");
  EXPECT_EQ(content("made"), "third");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFile, RightsOfNewFilesAreThoseOfOthers) {
  const mode_t before = umask(027);
  write_file(path("a"), "first");
  umask(before);
  EXPECT_EQ(static_cast<int>(fs::status(path("a")).permissions()), 0640);
}

TEST_F(OutputFile, WhatIsNoFileIsNamed) {
  fs::create_directory(path("folder"));
  fs::create_symlink("loop", path("loop"));
  mkfifo(path("fifo").c_str(), 0600);
  const auto errors = [&](const std::string& name, const std::string& error) {
    EXPECT_EQ(error_of_writing(name), error);
    if (name == "fifo") return;  // which somebody may read by then
    EXPECT_EQ(error_of([&] { check_can_be_written(path(name)); }), error);
  };
  errors("folder", "folder: cannot be written, it is a folder");
  errors("loop", "loop: cannot be written (Too many levels of symbolic links)");
  errors("fifo", "fifo: cannot be written (a FIFO that nobody reads)");
  errors("none/a", "none/a: cannot be written (No such file or directory)");
  EXPECT_EQ(error_of([] { write_file("/dev/full", "text"); }),
            "/dev/full: cannot be written (No space left on device)");
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFile, AFifoThatIsReadAndDescriptorsAreWrittenTo) {
  mkfifo(path("fifo").c_str(), 0600);
  const int reader = open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  char text[16] = {};
  write_file(path("fifo"), "through");
  EXPECT_EQ(read(reader, text, sizeof text), 7);
  EXPECT_STREQ(text, "through");
  close(reader);
  // What a descriptor has written stays.
  const int descriptor = open(path("a").c_str(), O_WRONLY | O_CREAT, 0600);
  write_file("/dev/fd/" + std::to_string(descriptor), "one ");
  fs::create_symlink("/proc/self/fd/" + std::to_string(descriptor), path("link"));
  write_file(path("link"), "two");
  close(descriptor);
  EXPECT_EQ(content("a"), "one two");
}

TEST_F(OutputFile, GzipsATextOfAnyLength) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 20) + 1}) {
    std::string text(size, 'x'), read(size + 1, '\0');
    for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 23);
    write_file(path("a.gz"), gzipped(text));
    const gzFile file = gzopen(path("a.gz").c_str(), "rb");
    EXPECT_EQ(gzread(file, read.data(), static_cast<unsigned>(read.size())), static_cast<int>(size));
    EXPECT_EQ(gzclose(file), Z_OK);
    read.resize(size);
    EXPECT_EQ(read, text) << size;
  }
}

TEST_F(OutputFile, InputsThatAreNoFilesAreNamed) {
  mkfifo(path("fifo").c_str(), 0600);
  fs::create_symlink("loop", path("loop"));
  EXPECT_EQ(error_of([&] { size_of_file(path("fifo"), "a report"); }),
            "fifo: not a regular file, expected a report");
  EXPECT_EQ(error_of([&] { size_of_file(path("loop"), "a report"); }),
            "loop: cannot be read (Too many levels of symbolic links)");
  EXPECT_TRUE(is_there(path("loop")));
  EXPECT_FALSE(is_there(path("none")));
}

}  // namespace
}  // namespace metaprof
