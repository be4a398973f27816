#pragma once
// One training step run in two ways: the figures that are compared.

#include <map>
#include <string>
#include <vector>

#include "core/units.h"

namespace metaprof {

struct ExecutionFigures {
  Bytes peak;           ///< the most that is allocated at a time, in the whole run
  Bytes saved;          ///< kept for backward when the first forward ends (profiler/storages/saved.h)
  Flops flops;          ///< of the first step, all operators
  int64_t kernels = 0;  ///< of the first step (opcount/counts.h)
};

/// Of what the figures of a compiled step are.
struct GraphScope {
  std::string device;                     ///< that the plans are for: which passes do something depends on it
  bool on_host = false;                   ///< then nothing is fused
  bool optimised = true;                  ///< false: the graph ran as it is (--fallback)
  std::vector<std::string> passes;        ///< that ran, each once, in order
  std::vector<std::string> left_out;      ///< as the user asked
  size_t plans = 0, of_gradients = 0;     ///< of the model, and of its gradients
  size_t kernels = 0, fused = 0;          ///< fused kernels in all plans, and the operators in them
  size_t batches = 0;                     ///< of matrix products
  std::map<std::string, size_t> outside;  ///< calls whose gradients eager autograd computes, by operator
  size_t followed = 0;                    ///< Program::followed
};

struct ExecutionComparison {
  ExecutionFigures eager, graph;
  GraphScope scope;  ///< of `graph`
};

/// What follows from data: both functions of the model's torch.cond calls.
struct BranchComparison {
  ExecutionFigures when_true, when_false;
  bool shown =
      true;  ///< the condition of the run that the report is of: the one that runs out of memory, else the higher peak
};

/// What follows from data: how often while_loop runs its body. The report is of one trip.
struct LoopComparison {
  ExecutionFigures one_trip, two_trips;
};

}  // namespace metaprof
