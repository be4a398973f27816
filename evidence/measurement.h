#pragma once
// What a user measured: the options of some training steps, and the statistics that the framework's allocator
// gave after each part of them. Recordings (X.json) are such measurements; other tools may write them, too.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meta/step/step.h"
#include "profiler/phases.h"

namespace metaprof {

/// Options of the run, in the words of the command line.
struct MeasuredOptions {
  StepOptions step;
  std::string device;      ///< "h200"
  std::string alloc_conf;  ///< PYTORCH_ALLOC_CONF
};

struct MeasuredInput {
  Sizes sizes;
  std::string dtype;  ///< as the framework prints it: "float32"
};

/// Statistics after one part of the run. A number that was not measured is not there.
struct MeasuredPhase {
  StepPart part;
  std::map<std::string, AllocatorNumber> numbers;  ///< by name: "allocated_bytes"; peaks within the part
  bool out_of_memory = false;                      ///< it ended with this error
};

struct Measurement {
  std::filesystem::path path;
  std::string id;
  std::string model;                         ///< "gpt2", as the export is named
  std::optional<int64_t> batch, seq, image;  ///< where they differ from the model's own
  MeasuredOptions options;
  Bytes device_memory;
  bool planned_workspaces = true;  ///< cuDNN planned its workspaces; false: an emulated one that needs none
  int64_t parameter_tensors = 0;
  std::vector<MeasuredInput> inputs;
  std::vector<MeasuredPhase> phases;

  /// The export that the run used: "tiny_llama.b2.s4096.pt2".
  std::string export_name() const;
  /// The log of events beside it, if there is one.
  std::optional<std::filesystem::path> log() const;
};

/// Errors, with the file, the member and what is expected: no such file, no JSON, a member is missing or of
/// another type, a negative number of bytes, a peak below the current value (units differ), an option that
/// cannot be modelled.
Measurement read_measurement(const std::filesystem::path& path);

}  // namespace metaprof
