// Modules of a captured program that are computed again in backward.

#include <algorithm>

#include "core/error.h"
#include "program/edits/rewriting.h"
#include "program/edits/variants.h"

namespace metaprof {
namespace {

void expect_one_forward(const Program& program, const CheckpointRegion& region) {
  for (size_t i = region.begin; i < region.end; ++i) {
    const GraphNode& node = program.graph.nodes[i];
    for (const std::string_view call : {"phase", "pause", "backward", "optimizer_enter", "optimizer"})
      if (is_step(node, call))
        fail("--checkpoint: {}: {} is called within a module that is to be computed again", program.origin,
             call_text(program, node));
  }
}

}  // namespace

void checkpoint_modules(Program& program, const std::vector<CheckpointRegion>& regions) {
  std::vector<CheckpointRegion> all = regions;
  for (const CheckpointRegion& region : regions) expect_one_forward(program, region);
  for (const CheckpointRegion& own : program.graph.checkpoints) {
    const auto meets = [&](const CheckpointRegion& region) {
      return own.begin < region.end && region.begin < own.end;
    };
    const auto met = std::ranges::find_if(regions, meets);
    if (met == regions.end()) {
      all.push_back(own);
    } else if (own.begin < met->begin || own.end > met->end) {
      fail("--checkpoint: {} computes {} again already", program.origin,
           call_text(program, program.graph.nodes[met->begin]));
    }
  }
  std::ranges::sort(all, {}, &CheckpointRegion::begin);
  program.graph.checkpoints = std::move(all);
}

}  // namespace metaprof
