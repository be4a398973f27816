#pragma once
// The sums over nodes against the totals of the step: profiler/nodes/nodes.h says which are equal.

#include <gtest/gtest.h>

#include <algorithm>

#include "profiler/nodes/nodes.h"
#include "profiler/storages/saved.h"
#include "profiler/timeline.h"

namespace metaprof {

/// Live bytes by the timeline after the events before `end`, and the most of those from `begin` to `end`.
struct LiveBytes {
  int64_t at_begin = 0, at_end = 0, most = 0;
};
inline LiveBytes live_bytes(const std::vector<Sample>& samples, EventRange range) {
  LiveBytes live;
  for (const Sample& sample : samples) {
    if (sample.event >= range.end) break;
    int64_t total = 0;
    for (const Bytes bytes : sample.by_category) total += bytes.count;
    if (sample.event < range.begin) live.at_begin = total;
    live.at_end = total;
    if (sample.event >= range.begin) live.most = std::max(live.most, total);
  }
  live.most = std::max(live.most, live.at_begin);
  return live;
}

inline void expect_identities(const Trace& trace, Device device, Granularity granularity) {
  SCOPED_TRACE(std::string(to_string(granularity)));
  const Rates rates{.bytes_per_second = 1e12, .flops_f64 = 1e12, .flops_f32 = 1e12, .flops_f16 = 1e12};
  const NodeProfile nodes = profile_nodes(trace, device, granularity, rates);
  std::vector<NodeRow> rows = nodes.rows;
  rows.push_back(nodes.outside);

  int64_t kept = 0, grown_forward = 0, grown_backward = 0;
  Flops forward, backward, recompute;
  double seconds = 0;
  for (const NodeRow& row : rows) {
    kept += row.kept().count;
    if (row.node.kind != ModelNode::Kind::input) grown_forward += (row.kept() + row.fwd_mem_other).count;
    grown_backward += (row.bwd_mem_out + row.bwd_mem_grad + row.bwd_mem_other + row.recomputed).count -
                      row.bwd_mem_freed.count;
    forward += row.fwd_flop;
    backward += row.bwd_flop;
    recompute += row.recompute_flop;
    seconds += row.fwd_time + row.bwd_time + row.recompute_time;
  }
  EXPECT_EQ(nodes.outside.kept().count, 0) << "every result belongs to a node";
  EXPECT_EQ(nodes.saved, saved_by_first_forward(trace, device).bytes);
  EXPECT_EQ(kept, (nodes.saved + nodes.held).count);

  const std::vector<Sample> samples = timeline(trace, device);
  const NodeGraph graph = node_graph(trace, device, granularity);
  const LiveBytes in_forward = live_bytes(samples, graph.forward);
  EXPECT_EQ(grown_forward, in_forward.at_end - in_forward.at_begin);
  EXPECT_EQ(nodes.live_after_forward.count, in_forward.at_end);
  int64_t most_forward = 0, most_backward = 0;
  for (const NodeVisit& visit : nodes.visits) {
    const NodeRow& row = visit.node == kNoNode ? nodes.outside : nodes.rows[static_cast<size_t>(visit.node)];
    const Bytes tmp = visit.backward ? row.bwd_mem_tmp : row.fwd_mem_peak;
    EXPECT_LE(visit.most - visit.live, tmp);
    int64_t& most = visit.backward ? most_backward : most_forward;
    most = std::max(most, visit.most.count);
  }
  EXPECT_EQ(most_forward, in_forward.most);
  if (graph.backward.end > graph.backward.begin) {
    const LiveBytes in_backward = live_bytes(samples, graph.backward);
    EXPECT_EQ(grown_backward, in_backward.at_end - in_backward.at_begin);
    EXPECT_EQ(most_backward, in_backward.most);
  }

  const Counts counts = count(trace, rates);
  EXPECT_EQ(forward, counts.total.all.forward);
  EXPECT_EQ(backward, counts.total.all.backward);
  EXPECT_EQ(recompute, counts.total.all.recompute);
  EXPECT_NEAR(seconds, counts.roofline.total() - counts.roofline.optimizer, 1e-9 * seconds);
}

inline void expect_identities(const Trace& trace, Device device) {
  for (const Granularity granularity : {Granularity::module, Granularity::function, Granularity::op})
    expect_identities(trace, device, granularity);
}

}  // namespace metaprof
