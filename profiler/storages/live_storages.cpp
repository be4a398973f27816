#include "profiler/storages/live_storages.h"

namespace metaprof {

LiveStorages::LiveStorages(const Trace& trace, Device device)
    : trace_(trace), device_(device), states_(trace.storages.size()) {
  for (size_t i = 0; i < states_.size(); ++i) states_[i].category = trace.storages[i].category;
  for (const Event& event : trace.events)
    if (event.kind == Event::Kind::save ||
        (event.kind == Event::Kind::category && static_cast<Category>(event.detail) == Category::activation))
      states_[event.id].kept = true;
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
    case Event::Kind::category: break;
    default: return false;
  }
  if (!on_device(event.id)) return false;
  State& state = states_[event.id];
  if (state.alive) add(state, false);
  switch (event.kind) {
    case Event::Kind::alloc:
      state.alive = true;
      state.bytes = trace_.bytes(event.id);
      state.category = static_cast<Category>(event.detail);
      break;
    case Event::Kind::free: state.alive = false; break;
    default: state.category = static_cast<Category>(event.detail);
  }
  if (state.alive) add(state, true);
  return true;
}

}  // namespace metaprof
