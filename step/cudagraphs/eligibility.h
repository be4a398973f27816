#pragma once
// Whether a program can be captured as a CUDA graph, and if not, why and where.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/units.h"
#include "step/cudagraphs/mutation_kind.h"

namespace metaprof {

class Registry;
class Trace;
enum class Phase : uint8_t;
struct Program;

enum class SkipReason : uint8_t {
  none,
  several_devices,
  host_node,              ///< an operator's tensors are on the host
  incompatible_operator,  ///< its record says so
  data_read,              ///< an operator waits for the device and reads what it has computed
  number_input,           ///< an input is no tensor, and changes from call to call
  dynamic_sizes,          ///< sizes follow the inputs', and the policy is to capture nothing then
  mutated_input           ///< an input is written to that no graph manages
};
/// As JSON has it: "host_node".
std::string_view to_string(SkipReason reason);

/// What is captured, and after what.
struct CapturePolicy {
  bool skip_dynamic_sizes =
      false;  ///< where sizes change; else one graph is recorded for each size that comes
  std::set<std::string> earlier_outputs = {};  ///< inputs that an earlier captured graph has made
};

/// The call that is responsible.
struct CapturePlace {
  std::string op;      ///< "aten::nonzero"
  std::string module;  ///< path; empty: none
  std::string line;    ///< `net.py:12: y = self.fc(x)`; empty: not known
};

/// An input of the captured graph.
struct CaptureInput {
  std::string name;
  bool fixed = false;  ///< its address stays: parameters, buffers, constants. Others are copied into the pool
  Bytes copied;        ///< per call; 0 for fixed ones and numbers
  MutationKind mutation = MutationKind::none;
};

struct CaptureVerdict {
  std::string graph;  ///< "forward", "backward"
  SkipReason reason = SkipReason::none;
  std::string message;  ///< one line; empty: it is captured
  CapturePlace place;
  std::vector<CaptureInput> inputs;
  std::set<std::string> unknown;  ///< operators without a record, of which nothing could be said
  std::map<std::string, std::string> first_nodes;  ///< per device: the first call that has a tensor there

  bool captured() const { return reason == SkipReason::none; }
};

/// Of the program as it is called. Reasons are looked for in the order of SkipReason, calls in theirs.
CaptureVerdict judge_forward(const Program& program, const Registry& registry,
                             const CapturePolicy& policy = {});

/// Of the forward or the backward that steps of the trace ran. Inputs are not looked at: a backward has none that
/// are written to, and what a run's forward takes is not known.
CaptureVerdict judge_run(const Trace& trace, Phase phase, const Registry& registry);

/// "captured", or "skipped: MESSAGE".
std::string to_text(const CaptureVerdict& verdict);

}  // namespace metaprof
