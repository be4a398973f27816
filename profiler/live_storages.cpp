#include "profiler/live_storages.h"

namespace metaprof {

LiveStorages::LiveStorages(const Trace& trace, DeviceType device)
    : trace_(trace), device_(device), states_(trace.storages.size()) {
  for (size_t i = 0; i < states_.size(); ++i) states_[i].category = trace.storages[i].category;
  for (const Event& event : trace.events)
    if (event.kind == Event::Kind::save) states_[event.id].kept = true;
}

Category LiveStorages::shown_category(const State& state) {
  return state.category == Category::activation && !state.kept ? Category::temporary : state.category;
}

Category LiveStorages::category(uint32_t storage) const { return shown_category(states_[storage]); }

void LiveStorages::add(const State& state, bool born) {
  Bytes& of_category = by_category_[static_cast<size_t>(shown_category(state))];
  if (born) {
    total_ += state.bytes;
    of_category += state.bytes;
  } else {
    total_ -= state.bytes;
    of_category -= state.bytes;
  }
}

bool LiveStorages::pass(const Event& event) {
  switch (event.kind) {
    case Event::Kind::alloc:
    case Event::Kind::free:
    case Event::Kind::category:
    case Event::Kind::resize: break;
    default: return false;
  }
  if (!on_device(event.id)) return false;
  State& state = states_[event.id];
  if (state.alive) add(state, false);
  switch (event.kind) {
    case Event::Kind::alloc:
      state.alive = true;
      state.bytes = {event.value};
      state.category = static_cast<Category>(event.detail);
      break;
    case Event::Kind::free: state.alive = false; break;
    case Event::Kind::category: state.category = static_cast<Category>(event.detail); break;
    default: state.alive = event.value > 0; state.bytes = {event.value};
  }
  if (state.alive) add(state, true);
  return true;
}

}  // namespace metaprof
