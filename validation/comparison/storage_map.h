#pragma once
// Which of our storages stands for which storage of a recording.

#include <cstdint>
#include <unordered_map>

namespace metaprof {

/// A one-to-one relation that grows as tensors are compared.
class StorageMap {
 public:
  /// In a recording of the host, the first block of a GPU has the number that elsewhere means that there is none: its
  /// address is 0, which only a recording of the GPU keeps taken.
  bool gpu_begins_at_zero = false;

  /// The two belong together, now or since before. `ours`: number of a storage in the trace.
  bool match(int64_t recorded, uint32_t ours) {
    auto [forth, new_forth] = to_ours_.emplace(recorded, ours);
    if (!new_forth) return forth->second == ours;
    auto [back, new_back] = to_recorded_.emplace(ours, recorded);
    if (!new_back) to_ours_.erase(forth);
    return new_back;
  }
  /// Replaces what was known: a storage whose block was exchanged for another one.
  void rebind(int64_t recorded, uint32_t ours) {
    to_ours_[recorded] = ours;
    to_recorded_[ours] = recorded;
  }
  /// What is known here holds there, too.
  void merge_into(StorageMap& other) const {
    for (const auto& [recorded, ours] : to_ours_) other.rebind(recorded, ours);
  }
  /// 0: none yet.
  uint32_t ours(int64_t recorded) const {
    auto found = to_ours_.find(recorded);
    return found == to_ours_.end() ? 0 : found->second;
  }
  int64_t recorded(uint32_t ours) const {
    auto found = to_recorded_.find(ours);
    return found == to_recorded_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<int64_t, uint32_t> to_ours_;
  std::unordered_map<uint32_t, int64_t> to_recorded_;
};

}  // namespace metaprof
