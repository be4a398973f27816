#pragma once
// A Trace as text, one event a line: to be read, compared with `diff`, and written by hand in a test.
//
//   parameter fc.weight f32[3,4]g@1                  in the order of registration; `buffer NAME …` likewise;
//                                                    `= NAME` per further name of a tied one
//   # phase forward step 0 [micro M]                 setup takes no step
//   # pause                                          what follows, up to the next phase, belongs to none
//   # enter model.fc                                 a module's forward begins; the root's path is left out
//   + 3 4096 activation s1                           storage 3 is born with 4096 bytes, on stream 1
//   - 3                                              its last owner let go
//   storage 4 0 activation                           storage 4 exists without an event (it has no bytes)
//   > aten::addmm f32[3]g@2 f32[8,4]@5 f32[3,4]g@1   an operator begins, with its input tensors
//   < f32[8,3]g@6 counted=192 moved=272              it ends, with its results, FLOPs and bytes moved
//   node #2 AddmmBackward0 -> #1 0                   a node of the autograd graph and its next nodes
//   save 5 AddmmBackward0#2                          the node keeps storage 5; `release 5 #2` undoes it
//   > evaluate AddmmBackward0#2                      the engine evaluates a node, until its `<`
//   category 6 gradient                              from here on the storage is something else
//   wait 1 0                                         stream 1 waits for stream 0
//   record_stream 6 1                                storage 6 is also used on stream 1
//   # leave model.fc
//   loss MseLossBackward0#9                          per forward phase; `loss 0`: it has no node
//   // a comment
//
// Storages and nodes are numbered from 1 in the order of their lines. A tensor is DTYPE[SIZES], `g` if it
// requires a gradient, `@STORAGE` (`@hSTORAGE`: host memory, `@0`: none), or `None`. Words with blanks,
// quotes, backslashes or control characters stand in "…" with \" \\ \n \t \r \xHH.
//
// What follows from the lines around is left out; where it does not, a line says so with one of
//   >         module=PATH phase=NAME node=N depth=N kernel=NAME composite unmodelled assumed
//   <         counted=FLOPS own=FLOPS moved=BYTES
//   + storage module=PATH call=N (counted from 1; 0: none) name=TEXT device=cpu|cuda:N
//   node      module=PATH call=N seq=N
// own= is what is computed beyond counted=; it is negative where the framework's counter counts more than is computed, as for
// gradients of depthwise convolutions.
// The module is that of the innermost line that is open: `# enter`, `>` or `> evaluate`. The device is
// cuda:0.

#include <optional>
#include <string>
#include <string_view>

#include "meta/trace/trace.h"

namespace metaprof {

std::string to_text(const Trace& trace);

/// The inverse of `to_text`. Errors name the line and what is expected there; `origin` names the text.
Trace parse_trace(std::string_view text, std::string_view origin = "trace");

/// Inverse of to_string(Category); nothing if there is no such category.
std::optional<Category> category_named(std::string_view name);
/// Inverse of to_string(Phase).
std::optional<Phase> phase_named(std::string_view name);

}  // namespace metaprof
