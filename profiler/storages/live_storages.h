#pragma once
// The storages of one device that are alive, with their bytes by category, while a trace is walked event by
// event. Bytes are what was asked for.
//
// An activation that no node ever keeps for backward counts as temporary, unless the trace says later that it is one:
// what a forward without gradients returns. The other categories are the trace's own.

#include <array>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

using BytesByCategory = std::array<Bytes, kCategories>;

class LiveStorages {
 public:
  LiveStorages(const Trace& trace, Device device);

  /// Takes note of an event; true if it changed anything here.
  bool pass(const Event& event);

  bool on_device(uint32_t storage) const { return trace_.storages[storage].device == device_; }
  bool alive(uint32_t storage) const { return states_[storage].alive; }
  Bytes bytes(uint32_t storage) const { return states_[storage].bytes; }
  Category category(uint32_t storage) const;

  Bytes total() const { return total_; }
  const BytesByCategory& by_category() const { return by_category_; }

 private:
  struct State {
    bool alive = false;
    bool kept = false;  // by some node at some time, or as a result
    Category category = Category::activation;
    Bytes bytes;
  };
  void add(const State& state, bool born);
  static Category shown_category(const State& state);

  const Trace& trace_;
  const Device device_;
  std::vector<State> states_;
  Bytes total_;
  BytesByCategory by_category_;
};

}  // namespace metaprof
