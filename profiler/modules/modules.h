#pragma once
// What each module of the model keeps and needs. All figures include the modules inside it, and are of the
// first forward and the first backward of the trace, on one device, in bytes that were asked for.
//
// A storage is born *within* a module's forward if it is allocated between the beginning and the end of that
// forward. Then, for each forward of the module:
//
//   forward_out   storages born within it, alive at its end, that are its results: those that a later
//   operator
//                 of the same forward pass reads; where there is none, the first result of its last operator.
//                 Casts that autocast keeps are not among them.
//   forward_tmp   what it needs for a while: the most bytes born within it that were alive together, less
//                 those still alive at its end. So the most a forward adds is forward_tmp plus what stays.
//
// A storage is born within a module's backward if it is allocated while the engine evaluates a node that the
// module's forward made. Then, from the first to the last of these nodes:
//
//   backward_out  storages born within it and alive after its last node: gradients of its inputs and of its
//                 parameters.
//   backward_tmp  the most bytes born within it that were alive together, less backward_out.
//
// A module that is called several times has the sum of the results and the maximum of the temporaries. One
// that is never called (a list of modules) has those of the modules directly inside it.
// saved_bytes is its share of profiler/storages/saved.h: of the storages of nodes that its forward made. Storages are
// attributed once, so the root's figure is the total.

#include <string>
#include <vector>

#include "profiler/modules/parameters.h"
#include "profiler/storages/saved.h"

namespace metaprof {

struct ModuleRow {
  std::string path;  ///< "": the root
  int depth = 0;     ///< segments of the path
  int64_t parameters = 0;
  Bytes saved, forward_tmp, forward_out, backward_tmp, backward_out;
};

/// The tree of modules, each followed by those inside it in the order of their first forward; then those that
/// have parameters and are never called.
std::vector<ModuleRow> module_rows(const Trace& trace, Device device, const Parameters& parameters,
                                   const Saved& saved);

}  // namespace metaprof
