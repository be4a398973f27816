#pragma once
// Strategies for chains: modules of which each hands one tensor on to the next.

#include <memory>

#include "estimate/plan/strategies/module_tree.h"

namespace metaprof {

/// A stage of a chain.
struct PlannerStage {
  int32_t module = 0;  ///< of a ModuleTree
  int32_t list = -1;   ///< Module::list; only neighbours in one list can be computed again as one
  int64_t kept = 0;    ///< bytes that its forward keeps for backward
  int64_t bare = 0;    ///< of these its input, which stays if it is computed again
  RecomputeCost cost;  ///< of its forward
};

/// The lists of the tree one after the other, each module a stage.
std::vector<PlannerStage> chain_of(const ModuleTree& tree);

/// The optimal schedules of rotor (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for
/// heterogeneous chains, 2019): checkpoints of neighbouring stages, inside each other where that is cheaper. A
/// dynamic programme over stretches and memory, which is counted in `slots` parts of what the chain keeps. A plan
/// for each number of slots that changes it. Work: stages³ × slots.
std::unique_ptr<PlanSeries> chain_plans(const std::vector<PlannerStage>& stages, size_t slots = 256);

/// Each list in stretches of one length, all computed again: a plan for each length, the shortest last.
std::unique_ptr<PlanSeries> equal_stretch_plans(const std::vector<PlannerStage>& stages);

/// The baseline of Chen et al. (Training deep nets with sublinear memory cost, 2016): each list in √n stretches
/// of neighbours, all computed again. Two plans: nothing, and that.
std::unique_ptr<PlanSeries> square_root_plans(const std::vector<PlannerStage>& stages);

}  // namespace metaprof
