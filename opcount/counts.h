#pragma once
// What a step computes and moves, summed over a Trace: by phase, by operator, by module, and how long an
// ideal device would take. There are no formulas here: every call of a trace carries its FLOPs and bytes.
//
// FLOPs are 2 per multiply-add. `counted` is what the framework's own counter (torch.utils.flop_counter of
// PyTorch 2.11) would say: matrix products, convolutions and attention. `all` adds what that counter leaves
// out: elementwise operators, norms, losses.
//
// Only the first step counts, with all its micro-batches: a trace of three steps and one of a single step
// have the same figures. Setup and zero_grad compute nothing that belongs to a step.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "meta/trace/trace.h"
#include "opcount/rates.h"

namespace metaprof {

/// A figure for each part of a step.
template <class Quantity>
struct ByPhase {
  Quantity forward, backward, recompute, optimizer;

  /// The part for a phase; null for setup and zero_grad.
  Quantity* part(Phase phase) {
    switch (phase) {
      case Phase::forward: return &forward;
      case Phase::backward: return &backward;
      case Phase::recompute: return &recompute;
      case Phase::optimizer: return &optimizer;
      default: return nullptr;
    }
  }
  ByPhase& operator+=(const ByPhase& other) {
    forward += other.forward;
    backward += other.backward;
    recompute += other.recompute;
    optimizer += other.optimizer;
    return *this;
  }
  Quantity total() const { return forward + backward + recompute + optimizer; }
  friend bool operator==(const ByPhase&, const ByPhase&) = default;
};

struct PhaseSeconds {
  double forward = 0, backward = 0, recompute = 0, optimizer = 0;
  double total() const { return forward + backward + recompute + optimizer; }
};

/// The cost of some calls.
struct Cost {
  ByPhase<Flops> counted, all;
  ByPhase<Bytes> moved;  ///< read and written by ideal kernels: a lower bound, and at most 2^63 - 1

  Cost& operator+=(const Cost& other);
};

struct OpCost {
  std::string op;  ///< "aten.addmm": without the overload, as the framework's counter names it
  int64_t calls = 0;
  Cost cost;
};

struct Counts {
  Cost total;
  std::vector<OpCost> by_op;                           ///< by name
  std::map<std::string, Cost, std::less<>> by_module;  ///< forward, backward, recompute; with what is inside
  int64_t kernels = 0;  ///< calls that move bytes, one each; what a call does inside itself is a part of it
  /// Lower bound of the time: per call the longer of moving its bytes and computing its FLOPs.
  PhaseSeconds roofline;
  /// What it is expected to take, no bound (expected_time.h).
  PhaseSeconds expected;
};

/// Costs of all calls, by index into Trace::calls. A call whose cost is stated by the call around it has
/// none.
std::vector<CallCost> call_costs(const Trace& trace, const Rates& rates);

/// The calls of a composite call count by themselves. A call inside a kernel counts only if the operator
/// whose kernel it is states no cost of its own.
Counts count(const Trace& trace, const Rates& rates);

/// Counts::kernels of these events of the trace.
int64_t count_kernels(const Trace& trace, std::span<const Event> events);

/// Counts::total.counted, and nothing else.
ByPhase<Flops> counted_flops(const Trace& trace);

/// FLOPs per byte moved; 0 if nothing moves.
double arithmetic_intensity(Flops flops, Bytes moved);

/// "aten.addmm" for "aten::addmm" and "aten::addmm.out".
std::string op_packet_name(std::string_view op);

}  // namespace metaprof
