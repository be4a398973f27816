// run_programs SEED COUNT [FOLDER [FILE...]]: so many changed exports (.pt2) and programs (.mp), each run in one way. Without
// files: those of tests/data. What is found lies in FOLDER, and the exit status is 1.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "program/pt2/pt2.h"
#include "program/text/program_file.h"
#include "program/text/text.h"
#include "tests/fuzz/changed_export.h"
#include "tests/fuzz/changed_program.h"
#include "tests/fuzz/findings.h"
#include "tests/fuzz/shrink_program.h"

namespace metaprof {
namespace {

struct Original {
  std::string path;
  Program program;
  std::optional<ExportedArchive> archive;  // of an export that is not large
};

class Programs {
 public:
  Programs(uint64_t seed, const std::vector<std::string>& paths) : seed_(seed) {
    for (const std::string& path : paths) add(path);
    if (originals_.empty()) fail("no program can be read");
  }

  HostileCase make(uint64_t number) const {
    Random random(seed_, number);
    const Original& original = random.one_of(originals_);
    HostileCase hostile;
    if (original.archive && random.once_in(2)) {
      hostile.ending = ".pt2";
      hostile.bytes = changed_export(*original.archive, random);
    } else {
      hostile.bytes = to_text(changed_program(original.program, random));
    }
    hostile.options = random_options(random);
    hostile.every_report = random.once_in(5);
    hostile.way =
        random.one_of({Way::profile, Way::profile, Way::profile_graph, Way::graph, Way::cudagraphs});
    return hostile;
  }

 private:
  void add(const std::string& path) {
    try {
      Original original{path, path.ends_with(".mp") ? read_program_file(path) : read_pt2(path), std::nullopt};
      constexpr uintmax_t kLarge = 40'000;
      if (path.ends_with(".pt2") && std::filesystem::file_size(path) < kLarge)
        original.archive = read_archive(path);
      originals_.push_back(std::move(original));
    } catch (const Error& error) {
      fmt::print(stderr, "left out: {}\n", error.what());
    }
  }

  const uint64_t seed_;
  std::vector<Original> originals_;
};

// Exports with few calls, and captured programs.
std::vector<std::string> usual_paths() {
  constexpr uintmax_t kMostBytes = 60'000;
  std::vector<std::string> paths;
  for (const char* folder : {"models", "programs", "masks", "captured"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string("tests/data/") + folder)) {
      const std::string path = entry.path();
      if ((path.ends_with(".pt2") || path.ends_with(".mp")) && entry.file_size() < kMostBytes)
        paths.push_back(path);
    }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace
}  // namespace metaprof

int main(int count, char** words) {
  using namespace metaprof;
  if (count < 3) {
    fmt::print(stderr, "run_programs SEED COUNT [FOLDER [FILE...]]\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(words[1], nullptr, 10), cases = std::strtoull(words[2], nullptr, 10);
  const std::string folder = count > 3 ? words[3] : fmt::format("build/findings/programs-{}", seed);
  try {
    const Programs programs(seed,
                            count > 4 ? std::vector<std::string>(words + 4, words + count) : usual_paths());
    return run_cases(
        0, cases, folder, [&](uint64_t number) { return programs.make(number); }, shrink_program);
  } catch (const Error& error) {
    fmt::print(stderr, "run_programs: {}\n", error.what());
    return 2;
  }
}
