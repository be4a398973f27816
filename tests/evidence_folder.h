#pragma once
// Where recordings of the framework are: docs/evidence/evidence.md.

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace metaprof {

struct EvidenceFolder {
  std::filesystem::path steps;     ///< recordings of training steps
  std::filesystem::path planned;   ///< … with plans of cuDNN, and the table of these
  std::filesystem::path cases;     ///< recordings of operator cases
  std::filesystem::path models;    ///< exports of the steps' models, with facts about them
  std::filesystem::path programs;  ///< small exports, one feature each
  bool whole = false;              ///< all that was recorded
};

/// The part that tools/record/select_recordings.py chose for the checkout.
inline EvidenceFolder part_of_the_evidence() {
  const std::filesystem::path data = "tests/data", recordings = data / "recordings";
  return {.steps = recordings / "steps",
          .planned = recordings / "planned",
          .cases = recordings / "cases",
          .models = data / "models",
          .programs = data / "programs",
          .whole = false};
}

/// All of it, where METAPROF_SHARED or ../shared has it; else the part.
inline EvidenceFolder evidence_folder() {
  const char* given = std::getenv("METAPROF_SHARED");
  const std::filesystem::path shared = given ? given : "../shared", recordings = shared / "recordings";
  if (!std::filesystem::is_directory(recordings / "models")) return part_of_the_evidence();
  return {.steps = recordings / "models",
          .planned = recordings / "planned",
          .cases = recordings / "ops",
          .models = shared / "models",
          .programs = shared / "programs",
          .whole = true};
}

/// Folders inside all of the evidence, where it is there: parameters of tests that a checkout alone does not have.
inline std::vector<std::filesystem::path> whole_evidence(const char* folder) {
  const EvidenceFolder evidence = evidence_folder();
  const std::filesystem::path found = evidence.models.parent_path() / folder;
  if (!evidence.whole || !std::filesystem::exists(found)) return {};
  return {found};
}

}  // namespace metaprof
