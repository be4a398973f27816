// Programs that are kept as text, plain or gzipped.

#include "program/text/program_file.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace metaprof {
namespace {

const std::string kText =
    "metaprof program 1\ninput x = %x: f32[2]\n%y: f32[2] = aten::relu(%x)\noutput = %y\n";

class ProgramFiles : public testing::Test {
 protected:
  ProgramFiles() { std::filesystem::create_directories(folder_); }
  ~ProgramFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string message(const std::string& name) const {
    try {
      read_program_file(path(name));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

 private:
  const std::string folder_ = testing::TempDir() + "metaprof-programs-" + std::to_string(getpid());
};

TEST_F(ProgramFiles, ArePlainOrGzipped) {
  std::ofstream(path("plain.mp")) << kText;
  gzFile file = gzopen(path("small.mp").c_str(), "wb");
  gzwrite(file, kText.data(), static_cast<unsigned>(kText.size()));
  gzclose(file);
  for (const std::string name : {"plain", "small"}) {
    ASSERT_TRUE(is_program_file(path(name + ".mp")));
    const Program program = read_program_file(path(name + ".mp"));
    EXPECT_EQ(program.name, name) << "the file's, as the text has none";
    EXPECT_EQ(program.origin, path(name + ".mp"));
    EXPECT_EQ(program.graph.nodes.size(), 1u);
  }
}

TEST_F(ProgramFiles, MessagesNameFileAndLine) {
  std::ofstream(path("wrong.mp")) << "metaprof program 1\n%y = aten::relu(%x)\n";
  EXPECT_EQ(message("wrong.mp"), path("wrong.mp") + ":2: there is no value %x yet");
  EXPECT_NE(message("absent.mp").find(path("absent.mp")), std::string::npos);
}

}  // namespace
}  // namespace metaprof
