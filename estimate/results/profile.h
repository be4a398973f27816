#pragma once
// What an estimate found. docs/reference/profile_report.md explains the figures to users.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/option_value.h"
#include "estimate/results/advice.h"
#include "estimate/results/cache_row.h"
#include "estimate/results/epoch.h"
#include "estimate/results/execution.h"
#include "estimate/results/input_row.h"
#include "estimate/results/peak_contributors.h"
#include "estimate/results/verdict.h"
#include "meta/platform/planned_workspaces.h"
#include "opcount/counts.h"
#include "profiler/nodes/nodes.h"
#include "profiler/profile.h"

namespace metaprof {

/// Bytes of libraries' workspaces, by where their sizes come from: a table of measured ones, plans made by
/// the library itself, a rule of the framework or library; and calls of cuDNN by who answered.
struct WorkspaceSources {
  int64_t table = 0, planned = 0, rule = 0;
  int64_t unplanned_calls = 0;  ///< nobody was asked: their workspaces count as 0
  int64_t table_calls = 0, planned_calls = 0, rule_calls = 0;
  int64_t cudnn = 0;    ///< version of the library that was asked: 91900 is 9.19.0; 0: none was
  std::string failure;  ///< why it was not asked; empty: it was, or there was nothing to ask
  std::vector<std::pair<int64_t, WorkspaceSource>> sizes = {};  ///< of cuDNN's plans, and who said each
};

/// Where the sizes of cuDNN's workspaces come from, where a table or the library said all of them: "workspaces of 59 calls of
/// cuDNN: 129.3 MiB, asked of cuDNN 9.19.0". Empty: there are none, or `workspace_note` says it.
std::string workspace_source_line(const WorkspaceSources& workspaces);

/// Which figures are no plans of the library, and why; empty: all are.
std::string workspace_note(const WorkspaceSources& workspaces);

/// "9.19.0" of 91900.
std::string version_text(int64_t cudnn);

/// Tensors that Python may have let go at another time than the report has it, because an export does not tell. Of the
/// first forward; without those that are kept for backward, which live on in any case.
struct GuessedRow {
  std::string why;      ///< "made in a call of a function, whose variables an export does not show"
  int64_t tensors = 0;  ///< storages
  Bytes bytes;          ///< of all of them: no peak is further off for it
};

struct ProfileReport {
  std::string model;
  std::string device;        ///< "h200"
  std::string device_title;  ///< "NVIDIA H200"
  std::string framework;     ///< version of PyTorch: "2.11.0"
  std::string
      framework_reason;  ///< "as asked", "which wrote the model", "which ran the program", "the newest that is known"
  std::vector<std::string> warnings;  ///< what a reader should know of the program, one line each
  std::vector<std::string> of_run;    ///< names of options that the program's own run decided; empty: none
  Bytes device_memory;
  /// When memory runs out: what would be reserved, and what allocated, without a limit.
  std::optional<Bytes> needed_memory, needed_allocated;
  /// The least memory in which the step runs, where the allocator frees its cache and asks again; nothing: not asked
  /// for, or not known.
  std::optional<Bytes> runs_from;
  Bytes outside;        ///< of the device's memory: CUDA context, loaded kernels, handles; the most reported
  Bytes outside_least;  ///< the least that was reported
  std::string outside_source;      ///< where these come from; empty: they were given
  double margin = 0;               ///< share of the device's memory that is to stay free
  std::vector<InputRow> inputs;    ///< that were run
  std::vector<CacheRow> kv_cache;  ///< by layer; empty: the model was given none
  std::string parameter_types;     ///< "bf16", where the export has other floating types than f32; else empty
  std::set<std::string> as_usual;  ///< options whose value is the usual one
  std::vector<std::pair<std::string, OptionValue>> options;  ///< in the order in which they are shown
  int steps_run = 0;  ///< of the steps that were asked for; those left out repeat the last one. 0: not known
  std::map<std::string, std::string> module_types;  ///< by path
  MemoryProfile memory;
  std::vector<GuessedRow> guessed;  ///< the most bytes first
  Counts counts;
  /// Of gradients of inputs: FLOPs of gradients in the same nodes that nobody asked for, which were left out.
  std::optional<Flops> not_computed;
  WorkspaceSources workspaces;
  std::optional<GraphScope> graph;               ///< what ran as a graph; nothing: the steps ran eagerly
  std::optional<ExecutionComparison> execution;  ///< compiled as a graph: beside eager; nothing: not asked
  std::optional<BranchComparison> branches;  ///< of torch.cond; nothing: there are none, or --condition chose
  std::optional<LoopComparison> loops;       ///< of while_loop; nothing: there is none, or --trips said
  std::optional<NodeProfile> nodes;          ///< if the per-node pass was asked for
  /// Of batches of different lengths: all steps, where the rest of the report is of the batch with the most tokens; nothing:
  /// not asked for.
  std::optional<EpochReport> epoch;
  std::string fix;                ///< where it does not fit: "--optimizer-impl fused → 21.7 GiB"; or empty
  std::vector<AdviceRow> advice;  ///< as it is, then with what helps; empty: was not asked for
  std::vector<PeakContributor>
      peak_contributors;  ///< who holds the peak, the largest first; empty: was not asked for
};

Verdict verdict_of(const ProfileReport& report);

}  // namespace metaprof
