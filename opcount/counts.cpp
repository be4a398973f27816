#include "opcount/counts.h"

#include <algorithm>
#include <limits>
#include <span>
#include <unordered_map>

#include "meta/trace/module_path.h"
#include "opcount/expected_time.h"

namespace metaprof {
namespace {

// The part of a trace that counts.
std::span<const Event> first_step(const Trace& trace) {
  const auto end = std::ranges::find_if(trace.events, [](const Event& event) {
    return event.kind == Event::Kind::phase && event.id > 0 &&
           static_cast<Phase>(event.detail) != Phase::setup;
  });
  return {trace.events.begin(), end};
}

// Whether an open call already stands for what happens inside it.
struct Covering {
  bool flops = false;
  bool bytes = false;
};

// What covers each call, as the events go by.
class OpenCalls {
 public:
  /// Of a call that begins: what covers it.
  Covering begin(const CallRecord& call) {
    const Covering outer = open_.empty() ? Covering{} : open_.back();
    open_.push_back({.flops = outer.flops || (call.counted + call.own).count > 0,
                     .bytes = outer.bytes || call.moved.count > 0});
    return outer;
  }
  /// Any other event.
  void pass(const Event& event) {
    if (event.kind == Event::Kind::node) open_.push_back({});
    if (event.kind == Event::Kind::end && !open_.empty()) open_.pop_back();
  }

 private:
  std::vector<Covering> open_;
};

class Pricing {
 public:
  Pricing(const Trace& trace, const Rates& rates)
      : trace_(trace), rates_(rates), costs_(trace.calls.size()) {}

  std::vector<CallCost> run(std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.kind == Event::Kind::call)
        begin(event.id);
      else
        open_.pass(event);
    }
    return std::move(costs_);
  }

 private:
  void begin(uint32_t index) {
    const CallRecord& call = trace_.calls[index];
    const Covering outer = open_.begin(call);
    CallCost& cost = costs_[index];
    if (!outer.flops) {
      cost.counted = call.counted;
      cost.all = call.counted + call.own;
    }
    if (!outer.bytes) cost.moved = call.moved;
    cost.seconds = seconds(call, cost);
    cost.expected = expected_seconds(trace_, call, cost, rates_);
  }

  double seconds(const CallRecord& call, const CallCost& cost) const {
    const double rate = rates_.flops_of(trace_, call);
    const double computing = rate > 0 ? static_cast<double>(cost.all.count) / rate : 0;
    const double moving =
        rates_.bytes_per_second > 0 ? static_cast<double>(cost.moved.count) / rates_.bytes_per_second : 0;
    return std::max(computing, moving);
  }

  const Trace& trace_;
  const Rates& rates_;
  std::vector<CallCost> costs_;
  OpenCalls open_;
};

// A lower bound stays one where the sum has no place in 64 bits.
void add_at_least(Bytes& sum, Bytes more) {
  if (__builtin_add_overflow(sum.count, more.count, &sum.count))
    sum.count = std::numeric_limits<int64_t>::max();
}

class Counter {
 public:
  Counter(const Trace& trace, const Rates& rates) : trace_(trace), rates_(rates) {}

  Counts count() {
    const std::span<const Event> events = first_step(trace_);
    const std::vector<CallCost> costs = Pricing(trace_, rates_).run(events);
    for (const Event& event : events)
      if (event.kind == Event::Kind::call) add(trace_.calls[event.id], costs[event.id]);
    for (auto& [op, cost] : by_op_) counts_.by_op.push_back(std::move(cost));
    spread_over_modules();
    return std::move(counts_);
  }

 private:
  void add(const CallRecord& call, const CallCost& own) {
    if (!counts_.total.all.part(call.phase)) return;
    add(counts_.total, call.phase, own);
    add(by_module_[call.module], call.phase, own);
    counts_.kernels += own.moved.count > 0;
    if (!call.composite) add_to_op(call, own);
    *part(counts_.roofline, call.phase) += own.seconds;
    *part(counts_.expected, call.phase) += own.expected;
  }

  static void add(Cost& sum, Phase phase, const CallCost& own) {
    *sum.counted.part(phase) += own.counted;
    *sum.all.part(phase) += own.all;
    add_at_least(*sum.moved.part(phase), own.moved);
  }

  void add_to_op(const CallRecord& call, const CallCost& own) {
    OpCost*& op = of_text_[call.op];
    if (!op) {
      const std::string name = op_packet_name(trace_.text(call.op));
      op = &by_op_[name];
      op->op = name;
    }
    ++op->calls;
    add(op->cost, call.phase, own);
  }

  static double* part(PhaseSeconds& seconds, Phase phase) {
    switch (phase) {
      case Phase::backward: return &seconds.backward;
      case Phase::recompute: return &seconds.recompute;
      case Phase::optimizer: return &seconds.optimizer;
      default: return &seconds.forward;
    }
  }

  // The optimizer's calls belong to no module.
  void spread_over_modules() {
    for (auto& [module, cost] : by_module_) {
      cost.counted.optimizer = cost.all.optimizer = {};
      cost.moved.optimizer = {};
      for (const std::string_view path : enclosing_modules(trace_.text(module)))
        counts_.by_module[std::string(path)] += cost;
    }
  }

  const Trace& trace_;
  const Rates& rates_;
  Counts counts_;
  std::unordered_map<uint32_t, OpCost*> of_text_;  // by text of the operator
  std::map<std::string, OpCost> by_op_;
  std::unordered_map<uint32_t, Cost> by_module_;  // by text of the path, without what is inside
};

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  counted += other.counted;
  all += other.all;
  add_at_least(moved.forward, other.moved.forward);
  add_at_least(moved.backward, other.moved.backward);
  add_at_least(moved.recompute, other.moved.recompute);
  add_at_least(moved.optimizer, other.moved.optimizer);
  return *this;
}

std::vector<CallCost> call_costs(const Trace& trace, const Rates& rates) {
  return Pricing(trace, rates).run(trace.events);
}

Counts count(const Trace& trace, const Rates& rates) { return Counter(trace, rates).count(); }

int64_t count_kernels(const Trace& trace, std::span<const Event> events) {
  int64_t kernels = 0;
  OpenCalls open;
  for (const Event& event : events) {
    if (event.kind != Event::Kind::call) {
      open.pass(event);
      continue;
    }
    const CallRecord& call = trace.calls[event.id];
    kernels += !open.begin(call).bytes && call.moved.count > 0;
  }
  return kernels;
}

ByPhase<Flops> counted_flops(const Trace& trace) {
  ByPhase<Flops> sum;
  OpenCalls open;
  for (const Event& event : first_step(trace)) {
    if (event.kind != Event::Kind::call) {
      open.pass(event);
      continue;
    }
    const CallRecord& call = trace.calls[event.id];
    const Covering outer = open.begin(call);
    if (Flops* part = sum.part(call.phase); part && !outer.flops) *part += call.counted;
  }
  return sum;
}

double arithmetic_intensity(Flops flops, Bytes moved) {
  return moved.count > 0 ? static_cast<double>(flops.count) / static_cast<double>(moved.count) : 0;
}

std::string op_packet_name(std::string_view op) {
  const size_t colons = op.find("::");
  if (colons == op.npos) return std::string(op);
  const std::string_view name = op.substr(colons + 2);
  return std::string(op.substr(0, colons)) + '.' + std::string(name.substr(0, name.find('.')));
}

}  // namespace metaprof
