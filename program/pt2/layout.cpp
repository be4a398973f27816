#include "program/pt2/layout.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace metaprof {
namespace {

constexpr std::string_view kModels = "models/", kJson = ".json";
constexpr std::string_view kLegacyProgram = "serialized_exported_program.json";

struct Candidate {
  const Archive::Entry* entry;
  std::string root, name;
};

// ROOT/models/NAME.json, where ROOT ends with a slash or is empty.
std::vector<Candidate> find_candidates(const Archive& archive) {
  std::vector<Candidate> candidates;
  for (const Archive::Entry& entry : archive.entries()) {
    const std::string_view name = entry.name;
    const size_t slash = name.rfind('/');
    if (slash == std::string_view::npos || !name.ends_with(kJson)) continue;
    const std::string_view folder = name.substr(0, slash + 1);
    if (folder != kModels && !folder.ends_with("/models/")) continue;
    candidates.push_back({&entry, std::string(folder.substr(0, folder.size() - kModels.size())),
                          std::string(name.substr(slash + 1, name.size() - slash - 1 - kJson.size()))});
  }
  // Files of a user under extra/ may look like programs; the archive's own lie nearest to the root.
  const auto depth = [](const Candidate& c) { return std::count(c.root.begin(), c.root.end(), '/'); };
  const auto nearest = std::min_element(candidates.begin(), candidates.end(),
                                        [&](const auto& a, const auto& b) { return depth(a) < depth(b); });
  if (nearest != candidates.end()) {
    const auto least = depth(*nearest);
    std::erase_if(candidates, [&](const Candidate& candidate) { return depth(candidate) > least; });
  }
  return candidates;
}

std::string names_of(const std::vector<Candidate>& candidates) {
  std::string names;
  for (const Candidate& candidate : candidates) names += (names.empty() ? "" : ", ") + candidate.name;
  return names;
}

const Candidate& choose(const Archive& archive, const std::vector<Candidate>& candidates,
                        const std::string& wanted) {
  if (wanted.empty() && candidates.size() == 1) return candidates.front();
  const Candidate* chosen = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!wanted.empty() && candidate.name != wanted) continue;
    if (chosen && candidate.entry->name == chosen->entry->name)
      fail("{}: the archive holds {} twice: export again", archive.path(), candidate.entry->name);
    if (chosen && candidate.name == chosen->name)
      fail("{}: two programs are called model '{}': {} and {}", archive.path(), candidate.name,
           chosen->entry->name, candidate.entry->name);
    chosen = &candidate;
  }
  if (!chosen)
    fail("{}: no program '{}' in the archive; it holds {}", archive.path(), wanted, names_of(candidates));
  if (wanted.empty())
    fail("{}: the archive holds several programs: name one of {}, as {}:NAME", archive.path(),
         names_of(candidates), archive.path());
  return *chosen;
}

const Archive::Entry* find_legacy_program(const Archive& archive) {
  for (const Archive::Entry& entry : archive.entries())
    if (entry.name == kLegacyProgram || entry.name.ends_with("/" + std::string(kLegacyProgram)))
      return &entry;
  return nullptr;
}

[[noreturn]] void reject_without_program(const Archive& archive) {
  for (const Archive::Entry& entry : archive.entries())
    if (entry.name.find("data/aotinductor/") != std::string::npos)
      fail(
          "{}: an AOTInductor package: it holds compiled code and no graph; export the model with "
          "torch.export.save instead",
          archive.path());
  fail("{}: no program in the archive (no models/*.json): export again with torch.export.save",
       archive.path());
}

}  // namespace

Pt2Layout find_layout(const Archive& archive, const std::string& wanted) {
  Pt2Layout layout;
  const auto candidates = find_candidates(archive);
  if (candidates.empty()) {
    layout.program = find_legacy_program(archive);
    if (!layout.program) reject_without_program(archive);
    return layout;
  }
  const Candidate& chosen = choose(archive, candidates, wanted);
  layout.program = chosen.entry;
  layout.name = chosen.name;
  layout.is_one_of_several = candidates.size() > 1;

  const std::string weights = chosen.root + "data/weights/";
  layout.weights_config = archive.find(weights + chosen.name + "_weights_config.json");
  layout.notes = archive.find(chosen.root + "extra/training.json");
  for (const Archive::Entry& entry : archive.entries())
    if (entry.size > 0 && entry.name.starts_with(weights))
      layout.nonempty_weights.insert(entry.name.substr(weights.size()));
  return layout;
}

}  // namespace metaprof
