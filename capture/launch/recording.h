#pragma once
// What the recorder (capture/recorder/) has written of a program's processes. docs/reference/run.md describes the files.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/launch/emulator_log.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/units.h"
#include "meta/allocator/device_allocator.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// A row of the allocator's own statistics: at the end of a phase, and the peaks within it.
struct RunPhase {
  std::string
      phase;  ///< setup, forward, backward, optimizer, zero_grad; after: what follows the last of them
  std::string
      name;  ///< what the program did within it (load, resume, evaluate, generate, save, a name of its own), else the phase
  int64_t step = 0;
  int64_t micro = -1;  ///< -1: the step has one micro-batch
  double seconds = 0;  ///< since the recorder was attached
  AllocatorNumbers numbers;
  int64_t retries = 0, failures = 0;  ///< of requests, so far
  /// Forwards without a backward between them, of which each leaves memory: what it leaves at least, the module's type, and the
  /// program's line that calls it. 0: there are none.
  int64_t calls = 0;
  Bytes growth_by_call;
  std::string calls_module, calls_line;
};

/// Rows as the steps have them: what the program did within a phase is part of it.
std::vector<RunPhase> rows_by_phase(const std::vector<RunPhase>& rows);

/// Data that the program copied from the device to the host.
struct DataRead {
  std::string op, line;  ///< the line may be empty
  int64_t count = 0;
  std::string source;  ///< of the answer: computed, random, assumed, unknown; device: of a real one
};

/// A request that the device could not serve.
struct RecordedOutOfMemory {
  std::string phase;  ///< or what the program did within it, as RunPhase::name
  int64_t step = 0;
  std::string module, line, function;  ///< of the program; may be empty
  Bytes requested, allocated, reserved;
};

/// What ended the program before it was done.
struct RecordedException {
  std::string type;  ///< "RuntimeError"
  std::string line;  ///< of the program, where it was raised; may be empty
  std::string phase;
  int64_t step = 0;
  bool out_of_memory = false;  ///< of the device
};

/// Blocks that were freed and that a stream still used when the allocator had reserved most.
struct WaitingBlocks {
  Bytes bytes;
  std::string line;  ///< that asked for the largest; may be empty
};

/// A storage that was alive when most was allocated.
struct RecordedStorage {
  Bytes bytes;
  Category category = Category::temporary;
  std::string name;  ///< of a parameter, a buffer, a gradient or the optimizer's state; may be empty
  std::optional<Sizes> shape;  ///< of a tensor that is known; nothing: none is
  DType dtype = DType::f32;    ///< of that tensor
  std::string line;            ///< that made it; may be empty
  std::string made_in;         ///< a library's function that the line led to; may be empty
  std::string held_by;         ///< "losses (train.py:31), a list of 20"; may be empty
};

/// A peak after the steps of which every request was kept.
struct RecordedPeak {
  Bytes allocated;
  std::vector<RecordedStorage> storages;  ///< the largest first, then those that stand for several
};

/// An outermost module at its first call.
struct RecordedModel {
  std::string type;                               ///< "ResNet"
  int64_t tensors = 0, trainable = 0, bytes = 0;  ///< of its parameters
  std::vector<std::pair<Sizes, std::string>>
      inputs;  ///< sizes and dtype ("float32") of the tensors it was called with
};

/// A change of the program that would do something (capture/recorder/metaprof_recorder/program/fixes.py).
struct PossibleFix {
  std::string name;     ///< "fused"; "no_grad=/me/val.py:20"
  std::string change;   ///< as a user writes it; {}: a line of the program, or a number
  std::string line;     ///< of the program, that is changed; empty: no particular one
  int64_t largest = 0;  ///< the number that the program has; 0: the change has no number

  bool operator==(const PossibleFix&) const = default;
};

/// What one process did to one device.
struct RecordedDevice {
  int device = 0;
  std::string title;
  Bytes memory;
  std::vector<RunPhase> phases;
  std::vector<DataRead> reads;
  std::vector<RecordedOutOfMemory> out_of_memory;
  WaitingBlocks waiting;                   ///< of the steps of which every request was kept
  WaitingBlocks lent;                      ///< the largest that another stream uses, too (record_stream)
  std::optional<Bytes> outside_allocator;  ///< in use at the end, beyond what the allocator had reserved
  std::optional<Trace> trace;              ///< of the steps of which every request was kept
  std::string log;                         ///< the allocator's history; empty: it was not asked for
  std::vector<std::string> lines;          ///< by storage of the trace: "train.py:14"; may be empty
  std::vector<std::string> made_in;  ///< the same: the library's function that asked for it; may be empty
  std::vector<std::string> held_by;  ///< by storage of the trace: the variable that leads to it; may be empty
  std::vector<Category> held_as;     ///< the same: what it is there; `kept`: a variable's
  std::optional<RecordedPeak> peak;  ///< the latest that was looked at, if it is of a later step
  std::map<std::string, std::string> module_types;
  int64_t unmatched = 0;  ///< requests of which the operator is not known
};

struct RecordedProcess {
  int64_t pid = 0, parent = 0;
  std::vector<std::string> program;
  /// RANK, LOCAL_RANK, WORLD_SIZE and what decides memory (capture/recorder/metaprof_recorder/process/environment.py), as far as set.
  std::map<std::string, std::string> environment;
  std::string torch, cuda;            ///< versions; empty: torch was not imported
  int64_t cudnn = 0;                  ///< 91900 is 9.19.0; 0: not known
  std::vector<RecordedModel> models;  ///< in the order of their first calls
  bool used_device = false;           ///< also one of which no phase was over
  std::string problem, problem_text;  ///< why it could not be recorded; empty: it was
  std::vector<std::string> notes;     ///< what is missing in what was recorded
  std::vector<PossibleFix> fixes;
  std::string captured;    ///< text of the program as it called PyTorch; empty: none
  bool is_saving = false;  ///< it was ended while the captured program was written
  bool ended_after_steps = false;
  std::optional<RecordedException> exception;     ///< nothing: none ended it
  std::vector<std::pair<int, int>> failed_ranks;  ///< that it had started: rank and exit status
  EmulatorLog emulated;
  std::vector<RecordedDevice> devices;

  /// The rank that the launcher gave it; nothing: none did.
  std::optional<int> rank() const;
};

/// The processes that wrote something, those that used a device first and by rank; then by process number.
/// A last line that was cut off by the process's death is left out. Errors: a file is not what the recorder
/// writes.
std::vector<RecordedProcess> read_processes(const std::filesystem::path& folder);

/// For a display while the program runs: what the newest rows of the files say.
struct Progress {
  int64_t step = 0;
  std::string phase;
  Bytes peak;  ///< of reserved bytes so far
  bool any = false;
};
Progress read_progress(const std::filesystem::path& folder);

}  // namespace metaprof
