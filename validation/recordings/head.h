#pragma once
// The head of a recorded training step, X.json: how the allocator was set, and its statistics after each part
// of the steps. Recordings have more in it (measurement.h reads that).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/json_member.h"
#include "core/units.h"
#include "meta/allocator/statistics.h"
#include "meta/platform/framework.h"
#include "profiler/storages/cursor.h"

namespace metaprof {

/// The statistics at the end of a part. Numbers that were not measured are not there.
struct RecordedPhase {
  std::string name;              ///< as the log marks it: "forward step 0 micro 1"
  std::optional<StepPart> part;  ///< nothing: it is no part of training steps
  bool within = false;           ///< what the program did within the part has a name, and a row of its own
  std::vector<std::pair<const StatisticField*, int64_t>> numbers;
  std::string unknown;                       ///< a number that is no statistic of the allocator; empty: none
  std::optional<std::string> out_of_memory;  ///< the error that ended it

  /// By name: "allocated_bytes.all.peak".
  std::optional<int64_t> number(std::string_view field) const;
};

/// What a measurement's document is: a recording, or a report of `metaprof run --json` or `metaprof replay --json`.
enum class HeadKind : uint8_t { recording, run, replay };

struct RecordingHead {
  std::filesystem::path path;
  HeadKind kind = HeadKind::recording;
  std::optional<FrameworkVersion> framework;  ///< that ran it
  std::string alloc_conf;                     ///< the settings that its allocator read
  Bytes device_memory;
  bool real_device = false;  ///< the file says so: `"emulated": false`
  std::vector<RecordedPhase> phases;
};

/// Who writes heads, for messages.
inline constexpr const char* kHeadHint =
    "a measurement is what `metaprof run --json` writes, or a recording (docs/how_to/check.md)";

/// The framework whose rules hold for it: 2.11's where it does not say which one it was.
Framework framework_of(const RecordingHead& head);

/// Errors: it is a report of another command, or of another version.
HeadKind kind_of(const Member& root);
/// Of a report of a run: the process and device that reserved most. Errors: there is none.
Member largest_rank(const Member& root);

/// `path`: of the document. Errors, with file and member: one is missing or of another type, the framework is no
/// version that is known.
RecordingHead head_of(const std::filesystem::path& path, const Member& root);

/// The text of the file. Errors: there is no such file, it is too large or no JSON.
std::string read_head_text(const std::filesystem::path& path);

}  // namespace metaprof
