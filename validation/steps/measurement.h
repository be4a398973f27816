#pragma once
// What a user measured: the options of some training steps, and the statistics that the framework's allocator
// gave after each part of them. Recordings (X.json) are such measurements; other tools may write them, too.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "meta/platform/platform.h"
#include "step/options.h"
#include "validation/recordings/head.h"
#include "validation/results/check_result.h"

namespace metaprof {

struct MeasuredInput {
  Sizes sizes;
  std::string dtype;  ///< as the framework prints it: "float32"
};

struct Measurement {
  RecordingHead head;  ///< every phase is a part of training steps
  MeasuredOn on = MeasuredOn::real;
  std::string device_title;  ///< "NVIDIA H200", as the driver names it; empty: it does not say
  std::string torch, cuda;   ///< versions, "2.11.0+cu130" and "13.0"; empty: it does not say
  std::string id;
  std::string model;                         ///< "gpt2", as the export is named
  std::optional<int64_t> batch, seq, image;  ///< where they differ from the model's own
  RunOptions options;                        ///< those that the measurement says; a report of a run says none
  std::optional<int> cudnn;                  ///< 91900 is 9.19.0
  bool planned_workspaces = true;  ///< cuDNN planned its workspaces; false: an emulated one that needs none
  std::optional<int64_t> parameter_tensors;  ///< nothing: it does not say
  std::vector<MeasuredInput> inputs;

  /// The export that the run used: "tiny_llama.b2.s4096.pt2".
  std::string export_name() const;
  /// The log of events beside it, if there is one.
  std::optional<std::filesystem::path> log() const;
  /// Of training steps; those without an optimizer count their forwards.
  int64_t steps() const;
};

/// The platform with what the measurement says of it: memory, framework, libraries.
Platform measured_on(const Measurement& measurement, Platform platform);

/// True if the file is a report of `metaprof run` or `metaprof replay`, which do not say how the steps were made; false, too,
/// where it cannot be read.
bool says_no_options(const std::filesystem::path& path);

/// Errors, with the file, the member and what is expected: no such file, no JSON, a member is missing or of
/// another type, a negative number of bytes, a peak below the current value (units differ), an option that
/// cannot be modelled.
Measurement read_measurement(const std::filesystem::path& path);

}  // namespace metaprof
