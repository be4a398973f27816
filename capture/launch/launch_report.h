#pragma once
// What a run of a program did to memory: what was recorded, and what follows from it.

#include <optional>
#include <string>
#include <vector>

#include "capture/launch/process.h"
#include "capture/launch/recording.h"
#include "profiler/profile.h"
#include "program/program.h"

namespace metaprof {

/// One device as one process used it, with what follows from its requests.
struct RankRun {
  int rank = 0;
  RecordedDevice recorded;
  EmulatorLog emulated;
  std::string alloc_conf;             ///< the allocator's settings
  std::vector<RecordedModel> models;  ///< of the process
  MemoryProfile memory;  ///< of the steps of which every request was kept; phases are those of `recorded`
  /// Of what is alive at the peak, by `storage`: the line and the library's function that made it, the variable that holds it.
  std::vector<std::string> peak_lines, peak_made_in, peak_held_by;
  bool peak_is_near = false;  ///< what is alive is of an earlier moment with at most some per cent less
  /// Where the allocator's model, fed with the requests, first says something else than the allocator; empty: nowhere.
  std::string model_difference;
  /// What the allocator would have reserved at most, had every block come back when it was freed; nothing: as much, or it is
  /// not known.
  std::optional<Bytes> reserved_at_once;
  /// Memory ran out, the program caught it and went on: what was reserved at most after the last time. Nothing: it did
  /// not run out, or no part of a step followed.
  std::optional<Bytes> reserved_since_recovery;
  /// The least memory of the allocator in which the run goes through, where it frees its cache and asks again; nothing: not known,
  /// because not every request up to the peak was kept.
  std::optional<Bytes> runs_from;
  Bytes outside;  ///< of the device's memory, what the allocator cannot have
  bool expected =
      false;  ///< work took the time that it is expected to take; else it was complete when somebody waited
};

/// What a run took at most, over all ranks.
struct RunPeaks {
  Bytes allocated = {}, reserved = {};
  bool ran_out =
      false;  ///< memory ran out, and the program did not go on: the figures are what was taken by then
};

/// A change of the program, and what it took with it.
struct TriedFix {
  std::string name;                    ///< "foreach"; "batch=16+fused": several
  std::string change;                  ///< as a user writes it, "the optimizer with foreach=False"
  Bytes allocated, reserved;           ///< as RunPeaks
  bool fits = false, ran_out = false;  ///< as RunPeaks::ran_out
  std::string ended;  ///< why it could not be tried, "RuntimeError in forward of step 1"; empty: it could
  bool by_program = false;  ///< the program did not run with it: the captured one did
};

/// Changes, and what the program took with each.
struct TriedFixes {
  TriedFix none;  ///< without a change
  bool has_room =
      false;  ///< memory ran out: the figures are of a device with room for all that was asked for
  std::vector<TriedFix> rows;
  std::vector<std::pair<int, Program>> captured;  ///< rank and program, where it ran with room
  int64_t batch = 0;  ///< of the same: the first size of what a model was called with first; 0: not known
};

/// What the program took where its unknown answers were the other ones.
struct OtherAnswers {
  bool all_set = false;  ///< unknown masks had all of their elements set; false: unknown answers were 0
  std::string ended;     ///< as RunReport::ended
  RunPeaks peaks;
};

struct RunReport {
  std::vector<std::string> program;
  std::string device, device_title;  ///< "h200", "NVIDIA H200"
  Bytes device_memory;
  bool real = false;
  std::string clock;  ///< when work was complete: "at-once", "expected", "late"; of a real device empty
  bool asked_cudnn = false;  ///< for the workspaces of its plans; otherwise they count as 0
  std::string torch, cuda;   ///< versions
  int64_t cudnn = 0;         ///< 91900 is 9.19.0; 0: not known
  ProcessEnd end;
  bool ended_after_steps = false;
  /// What ended the program before it was done, "RuntimeError in forward of step 1 (train.py:5)"; empty: nothing did, or
  /// memory ran out.
  std::string ended;
  std::string problem;             ///< why nothing was recorded, as a sentence; empty: something was
  std::vector<std::string> notes;  ///< what is missing
  std::vector<RankRun> ranks;      ///< by rank, then by device
  std::optional<OtherAnswers> other_answers;  ///< nothing: it ran once, or had no unknown answer
  std::vector<PossibleFix> possible_fixes;
  std::optional<TriedFixes> fixes;                ///< nothing: none was asked for (try_fixes)
  std::vector<std::pair<int, Program>> captured;  ///< rank and program, where the run captured any
  std::vector<std::string> saved;                 ///< files of captured programs
  std::string
      not_captured;  ///< why there are none though they were asked for; empty: there are, or none were
};

}  // namespace metaprof
