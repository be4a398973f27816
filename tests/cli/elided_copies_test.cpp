// Exports from the CPU and from meta of models whose source copies tensors on a GPU that are contiguous elsewhere
// (tests/data/elided_copies, by tools/record/attention_programs.py with PyTorch 2.11 on the emulated device), against what they took.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

// F.multi_head_attention_forward leaves no frame, and holds the keys and values that it adds to (docs/explanation/lifetimes.md).
constexpr const char* kHoldsMore = "AttentionBiases";

TEST(ElidedCopies, AreMadeAsOnTheDevice) {
  int programs = 0;
  for (const auto& file : std::filesystem::directory_iterator("tests/data/elided_copies")) {
    if (file.path().extension() != ".json") continue;
    const std::string name = file.path().stem();
    for (const std::string device : {"cpu", "meta"}) {
      const std::string model = fmt::format("tests/data/elided_copies/{}.{}.pt2", name, device);
      const Outcome check = run_program("check " + model + " --against " + file.path().string() +
                                        " --tolerance 0% --workspaces none");
      const bool is_equal =
          check.out.find("allocated and requested bytes of every phase equal: 1 of 1") != std::string::npos &&
          check.out.find("peak of reserved bytes equal: 1 of 1") != std::string::npos;
      EXPECT_EQ(is_equal, name != kHoldsMore) << model << check.out << check.err;
      EXPECT_EQ(check.exit_code, 0) << model;
      ++programs;
    }
  }
  EXPECT_EQ(programs, 26);
}

// They are calls of a compiled model, too.
TEST(ElidedCopies, AreInGraphs) {
  const std::string model = "tests/data/elided_copies/Attention.cpu.pt2";
  const Outcome profile = run_program("profile " + model + " --execution graph --workspaces none");
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
}

std::string program_with_a_view(const std::string& attributes) {
  std::string file = testing::TempDir() + "view.mp";
  std::ofstream(file) << "metaprof program 1\nparameter x = %x: f32[4,6] grad\n"
                         "%t: f32[6,4] = aten::t(%x)\n%y: f32[24] = aten::view(%t, [24])"
                      << attributes << "\n%z: f32[] = aten::sum(%y)\nloss = %z\n";
  return file;
}

TEST(ElidedCopies, WithoutTheirSourceAreRefused) {
  const Outcome plain = run_program("profile " + program_with_a_view(""));
  EXPECT_EQ(plain.exit_code, 2);
  EXPECT_NE(plain.err.find("sizes [6,4] with strides [1,6] cannot be viewed as [24] without a copy"),
            std::string::npos)
      << plain.err;
  EXPECT_EQ(run_program("profile " + program_with_a_view(" copies_to_view")).exit_code, 0);
}

TEST(ElidedCopies, OfNoTensorAreRefused) {
  const std::string file = testing::TempDir() + "no_tensor.mp";
  std::ofstream(file) << "metaprof program 1\nparameter x = %x: f32[4,6] grad\n%y: f32[24] = "
                         "aten::view(None, [24]) copies_to_view\n"
                         "%z: f32[] = aten::sum(%x)\nloss = %z\n";
  const Outcome profile = run_program("profile " + file);
  EXPECT_EQ(profile.exit_code, 2);
  EXPECT_NE(profile.err.find("aten::view: no tensor is known for the argument 'self'"), std::string::npos)
      << profile.err;
}

TEST(ElidedCopies, AreOfViewsAlone) {
  const std::string file = testing::TempDir() + "copies.mp";
  std::ofstream(file)
      << "metaprof program 1\nparameter x = %x: f32[4,6] grad\n"
         "%y: f32[4,6] = aten::relu(%x) copies_to_view\n%z: f32[] = aten::sum(%y)\nloss = %z\n";
  const Outcome profile = run_program("profile " + file);
  EXPECT_EQ(profile.exit_code, 2);
  EXPECT_NE(profile.err.find("aten::relu copies to view, but is no aten::view"), std::string::npos)
      << profile.err;
}

}  // namespace
}  // namespace metaprof
