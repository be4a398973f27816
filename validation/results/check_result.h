#pragma once
// What comes of a comparison of estimates with measurements, and with earlier reports.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/storages/cursor.h"

namespace metaprof {

/// On what something was measured: the column in which it stands.
enum class MeasuredOn : uint8_t { emulated, real, replayed };

/// "emulated", "real", "replayed"
constexpr const char* to_string(MeasuredOn on) {
  return on == MeasuredOn::emulated ? "emulated" : on == MeasuredOn::real ? "real" : "replayed";
}

/// One statistic of one phase.
struct CheckRow {
  StepPart part;
  std::string field;                 ///< "allocated_bytes.peak"
  std::optional<int64_t> recorded;   ///< nothing: the phase was not measured
  std::optional<int64_t> estimated;  ///< nothing: the estimate has no such phase
  bool equal() const { return recorded == estimated; }
  /// (estimated − recorded) / recorded; nothing where that is no number.
  std::optional<double> error() const;
  /// It was measured, and the error is larger, or no number.
  bool exceeds(double tolerance) const;
};

/// The first request or return of device memory in which log and trace differ. Requests are compared by their
/// bytes; returns that follow each other as sets.
struct EventMismatch {
  int64_t line = 0;       ///< of the log
  std::string recorded;   ///< "+ 8192 in aten::linear > aten::addmm", "- 8192 …", "the end"
  std::string estimated;  ///< the same
};

/// Workspaces of libraries in an estimate: those of one operator and size, over all steps.
struct WorkspaceRow {
  std::string op;     ///< "aten::cudnn_convolution", or the workspace's name: "cuBLAS workspace"
  int64_t bytes = 0;  ///< of one
  int64_t count = 0;
  std::string
      source;  ///< "cudnn": it was asked; "table": of --workspaces FILE; "rule": of the framework, or ours
};

struct CheckResult {
  std::string id;
  std::string recording;  ///< its file
  std::string log;        ///< the file of its events; empty: there is none
  MeasuredOn on = MeasuredOn::real;
  std::vector<CheckRow> rows;
  size_t phases = 0, exact_phases = 0;  ///< exact: allocated and requested bytes, current and peak
  size_t exact_reserved_phases = 0;     ///< reserved bytes, current and peak
  CheckRow peak_allocated, peak_requested, peak_reserved;  ///< over all phases
  std::vector<WorkspaceRow> workspaces;                    ///< the largest first
  std::string workspace_note;  ///< which are no plans of the library, and why; empty: all are
  std::optional<EventMismatch> first_difference;  ///< nothing, too, where there is no log

  /// The peaks that decide: of allocated bytes (or of requested ones, where only these were measured), and of
  /// reserved bytes.
  std::vector<const CheckRow*> decisive() const;
  bool within(double tolerance) const;
};

struct BaselineRow {
  enum class Figure : uint8_t { allocated, requested, reserved, saved, flops };
  Figure figure;
  int64_t before = 0, after = 0;

  /// (after − before) / before; nothing where that is no number.
  std::optional<double> growth() const;
  bool grew_above(double tolerance) const;
};

/// One that changed, and by how much.
struct BytesChange {
  std::string name;
  int64_t before = 0, after = 0;
};

struct BaselineResult {
  std::string file;
  std::string model_before, model_after;
  std::vector<BaselineRow> rows;  ///< one of each figure
  /// Of a list, what changed most; nothing: it is equal.
  std::optional<BytesChange> saved_module, saved_node, peak_category;
  std::string peak_op, peak_module;  ///< what runs at the peak now
  bool out_of_memory_since = false;  ///< memory runs out, and did not then
  /// Figures of two models say nothing about each other.
  bool of_another_model() const { return model_before != model_after; }
  /// The user's line that calls in `saved_module`, else in `peak_module`; empty: the export has none.
  std::string source_file = {};
  int64_t source_line = 0;

  bool within(double tolerance) const;
};

}  // namespace metaprof
