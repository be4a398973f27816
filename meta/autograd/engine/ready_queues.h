#pragma once
// Nodes of one backward whose gradients are complete, a queue per device (engine.cpp of PyTorch 2.11: the
// device of a node decides, and every device has a thread of its own).

#include <algorithm>
#include <queue>
#include <vector>

#include "core/device.h"
#include "core/small_vector.h"

namespace metaprof {

/// The threads of the devices are taken to be equally fast: in a round each runs one node, and what becomes
/// ready meanwhile waits for the next round. With one device that is one node after the other. The order is
/// always the same one; the framework's, among devices, is that of the clock.
class ReadyQueues {
 public:
  /// Of a queue the highest sequence number comes first.
  void push(Device device, uint64_t sequence, uint32_t node) {
    nodes_of(device).push({sequence, node});
    ++waiting_;
  }
  bool empty() const { return waiting_ == 0; }

  using Round = SmallVector<uint32_t, 2>;
  /// The first node of every queue that has one: of the host, then by number of the device.
  Round take_round() {
    Round round;
    for (Queue& queue : queues_) {
      if (queue.nodes.empty()) continue;
      round.push_back(queue.nodes.top().node);
      queue.nodes.pop();
    }
    waiting_ -= round.size();
    return round;
  }

 private:
  struct Ready {
    uint64_t sequence;
    uint32_t node;
  };
  struct RunsLater {
    bool operator()(const Ready& a, const Ready& b) const { return a.sequence < b.sequence; }
  };
  using Nodes = std::priority_queue<Ready, std::vector<Ready>, RunsLater>;
  struct Queue {
    Device device;
    Nodes nodes;
  };

  Nodes& nodes_of(Device device) {
    for (Queue& queue : queues_)
      if (queue.device == device) return queue.nodes;
    const auto place = std::find_if(queues_.begin(), queues_.end(), [&](const Queue& queue) {
      return std::pair(queue.device.type, queue.device.index) > std::pair(device.type, device.index);
    });
    return queues_.insert(place, {device, {}})->nodes;
  }

  std::vector<Queue> queues_;
  size_t waiting_ = 0;
};

}  // namespace metaprof
