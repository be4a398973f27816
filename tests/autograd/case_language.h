#pragma once
// Text cases: small programs with what they keep and what they take, for people to read (*.case beside this
// file).
//
//   case TITLE                     a new program on a new device
//   # …                            a remark, also behind a statement
//   x = f32[2,3]                   a tensor;  x = f32[2,3] grad: a leaf that requires grad
//   y, z = max.dim(x, 1)           a call; arguments are names, numbers, None, True, False, "text", (1 2) for
//                                  integers, [a b] for tensors, calls, and name=value
//   add_.Tensor(x, 1)              a call for its effect
//   no_grad: STATEMENT             with grad mode off
//   drop x y                       their handles go
//   backward y                     from y, with ones
//   backward y, keep graph
//   g = grad(y, x)                 gradient of y with respect to x; several: g, h = grad(y, x, w)
//   saved y: self other            what the node that made y keeps, by name; nothing: y has no node
//   saved 4 * 6 + 8                bytes of all storages that nodes keep, each once
//   allocated 24                   bytes that are alive on the device
//   gradient x: f32[2,3]           sizes of .grad; none: there is none
//   fails "TEXT": STATEMENT        it is refused with a message that has TEXT in it

#include <string>

namespace metaprof {

/// Runs all cases of a file; what does not hold is a test failure at its line.
void run_case_file(const std::string& path);

}  // namespace metaprof
