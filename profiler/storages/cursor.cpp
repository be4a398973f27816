#include "profiler/storages/cursor.h"

namespace metaprof {

StepPart Cursor::part_of(const Event& event) {
  const auto phase = static_cast<Phase>(event.detail);
  return {
      .phase = phase == Phase::recompute ? Phase::backward : phase, .step = event.id, .micro = event.value};
}

void Cursor::pass(const Event& event) {
  switch (event.kind) {
    case Event::Kind::phase:
      part_ = part_of(event);
      begun_ = true;
      break;
    case Event::Kind::call: frames_.push_back({false, event.id}); break;
    case Event::Kind::node: frames_.push_back({true, event.id}); break;
    case Event::Kind::end:
      if (!frames_.empty()) frames_.pop_back();
      break;
    case Event::Kind::enter: modules_.push_back(event.id); break;
    case Event::Kind::leave:
      if (!modules_.empty()) modules_.pop_back();
      break;
    default: break;
  }
}

// The operator that the user would recognise: the outermost one within the innermost node.
const Cursor::Frame* Cursor::at_work() const {
  const Frame* found = nullptr;
  for (size_t i = frames_.size(); i-- > 0;) {
    const Frame& frame = frames_[i];
    if (frame.is_node) return found ? found : &frame;
    if (!trace_.calls[frame.index].composite) found = &frame;
  }
  return found;
}

std::string_view Cursor::op() const {
  const Frame* frame = at_work();
  if (!frame) return "";
  return trace_.text(frame->is_node ? trace_.nodes[frame->index].name : trace_.calls[frame->index].op);
}

std::string_view Cursor::module() const {
  if (const Frame* frame = at_work())
    return trace_.text(frame->is_node ? trace_.nodes[frame->index].module
                                      : trace_.calls[frame->index].module);
  return modules_.empty() ? "" : trace_.text(modules_.back());
}

bool Cursor::in_kernel() const {
  const Frame* frame = at_work();
  return frame && !frame->is_node;
}

uint32_t Cursor::node() const {
  for (size_t i = frames_.size(); i-- > 0;)
    if (frames_[i].is_node) return frames_[i].index + 1;
  return 0;
}

std::span<const Event> first_part(const Trace& trace, Phase phase) {
  Cursor cursor(trace);
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Event::Kind::phase && inside && cursor.begins_part(event))
      return std::span(trace.events).subspan(begin, i - begin);
    if (event.kind == Event::Kind::phase && !inside && static_cast<Phase>(event.detail) == phase) {
      inside = true;
      begin = i + 1;
    }
    cursor.pass(event);
  }
  return inside ? std::span(trace.events).subspan(begin) : std::span<const Event>();
}

}  // namespace metaprof
