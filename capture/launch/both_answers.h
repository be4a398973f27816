#pragma once
// A program that reads what an emulated device cannot know, run with either answer.

#include <functional>

#include "capture/launch/run.h"

namespace metaprof {

/// Runs the program with unknown answers as 0. If it read any, runs it once more with all elements of unknown masks set (`--assume
/// all`). Returns the report of the run that reserved more; `other_answers` has the peaks of the other one. `tell` is called before
/// the second run. A second run of which nothing was recorded is a note.
/// Errors: as of run_recorded.
RunReport run_with_both_answers(const LaunchOptions& options,
                                const std::function<void(const Progress&)>& progress,
                                const std::function<void()>& tell);

/// Of two reports that with the higher peak of reserved bytes; it says what the other one took.
RunReport larger_of(RunReport zero, RunReport all);

}  // namespace metaprof
