#pragma once
// Where in a run an event lies: phase, step, and the operator and module that are at work.

#include <span>
#include <string_view>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

/// A part of the step plan: a row of a recording's phases.
struct StepPart {
  Phase phase = Phase::setup;
  uint32_t step = 0;
  int64_t micro = -1;  ///< -1: the step has one micro-batch, or the part belongs to all of them

  friend bool operator==(const StepPart&, const StepPart&) = default;
};

class Cursor {
 public:
  explicit Cursor(const Trace& trace) : trace_(trace) {}

  /// Goes past an event.
  void pass(const Event& event);

  /// True if the event begins another part. Recomputation is a part of the backward in which it happens.
  bool begins_part(const Event& event) const {
    return event.kind == Event::Kind::phase && part_of(event) != part_;
  }
  const StepPart& part() const { return part_; }
  /// True once a phase has begun.
  bool begun() const { return begun_; }

  /// The outermost operator at work that is not composite, else the node, else nothing.
  std::string_view op() const;
  /// The module of that operator or node, else the innermost one whose forward runs.
  std::string_view module() const;
  /// True inside an operator that is not composite: what is called there is a part of its kernel.
  bool in_kernel() const;
  /// 1 + index of the innermost node being evaluated; 0: none.
  uint32_t node() const;

 private:
  struct Frame {
    bool is_node;
    uint32_t index;
  };
  static StepPart part_of(const Event& event);
  const Frame* at_work() const;

  const Trace& trace_;
  StepPart part_;
  bool begun_ = false;
  std::vector<Frame> frames_;
  std::vector<uint32_t> modules_;
};

/// The events of the first part of the step plan with this phase, in Trace::events; the event that begins it
/// is left out. Empty if there is none.
std::span<const Event> first_part(const Trace& trace, Phase phase);

}  // namespace metaprof
