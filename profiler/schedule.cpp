#include "profiler/schedule.h"

#include <cmath>
#include <unordered_map>

#include "profiler/storages/cursor.h"

namespace metaprof {
namespace {

class Clock {
 public:
  Clock(const Trace& trace, Device device, const Rates& rates)
      : trace_(trace), costs_(call_costs(trace, rates)), live_(trace, device), cursor_(trace) {
    schedule_.names.emplace_back();
    index_.emplace("", 0);
  }

  Schedule run() {
    for (; at_ < trace_.events.size(); ++at_) pass(trace_.events[at_]);
    end_phase();
    for (const size_t open : open_) schedule_.slices[open].end = now_;
    for (const size_t open : modules_) schedule_.slices[open].end = now_;
    schedule_.end = now_;
    return std::move(schedule_);
  }

 private:
  uint32_t name(std::string_view text) {
    const auto [found, is_new] = index_.try_emplace(text, static_cast<uint32_t>(schedule_.names.size()));
    if (is_new) schedule_.names.emplace_back(text);
    return found->second;
  }

  Slice& begin(Slice::Kind kind, std::string_view text, std::string_view module) {
    Slice& slice = schedule_.slices.emplace_back();
    slice.kind = kind;
    slice.phase = cursor_.part().phase;
    slice.step = cursor_.part().step;
    slice.name = name(text);
    slice.module = name(module);
    slice.begin = now_;
    return slice;
  }

  void close(std::vector<size_t>& stack) {
    if (stack.empty()) return;
    schedule_.slices[stack.back()].end = now_;
    stack.pop_back();
  }

  void end_phase() {
    if (phase_ == SIZE_MAX) return;
    schedule_.slices[phase_].end = now_;
    schedule_.phases.back().end = at_;
    phase_ = SIZE_MAX;
  }

  void pass(const Event& event) {
    const bool part = event.kind == Event::Kind::phase && (!cursor_.begun() || cursor_.begins_part(event));
    if (part || event.kind == Event::Kind::pause) end_phase();
    cursor_.pass(event);
    ++now_;
    if (part) {
      phase_ = schedule_.slices.size();
      begin(Slice::Kind::phase, to_string(cursor_.part().phase), "");
      schedule_.phases.push_back({cursor_.part(), at_, at_});
    }
    if (event.kind == Event::Kind::enter) {
      modules_.push_back(schedule_.slices.size());
      begin(Slice::Kind::module, trace_.text(event.id), trace_.text(event.id));
    }
    if (event.kind == Event::Kind::leave) close(modules_);
    if (event.kind == Event::Kind::call) begin_call(event.id);
    if (event.kind == Event::Kind::node) {
      const NodeRecord& node = trace_.nodes[event.id];
      open_.push_back(schedule_.slices.size());
      begin(Slice::Kind::node, trace_.text(node.name), trace_.text(node.module));
    }
    if (event.kind == Event::Kind::end) close(open_);
    if (live_.pass(event))
      schedule_.moments.push_back(
          {now_, at_, name(cursor_.op()), name(cursor_.module()), live_.by_category()});
  }

  void begin_call(uint32_t index) {
    const CallRecord& call = trace_.calls[index];
    const CallCost& cost = costs_[index];
    open_.push_back(schedule_.slices.size());
    Slice& slice = begin(Slice::Kind::op, trace_.text(call.op), trace_.text(call.module));
    slice.phase = call.phase;
    slice.flops = cost.all;
    slice.moved = cost.moved;
    now_ += std::llround(cost.seconds * 1e9);
  }

  const Trace& trace_;
  const std::vector<CallCost> costs_;
  LiveStorages live_;
  Cursor cursor_;
  Schedule schedule_;
  std::unordered_map<std::string_view, uint32_t> index_;  // keys are the trace's texts and literals
  std::vector<size_t> open_, modules_;                    // slices
  size_t phase_ = SIZE_MAX;
  int64_t now_ = 0;
  uint32_t at_ = 0;
};

}  // namespace

Schedule schedule(const Trace& trace, Device device, const Rates& rates) {
  return Clock(trace, device, rates).run();
}

}  // namespace metaprof
