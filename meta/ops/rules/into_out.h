#pragma once
// Overloads that write to a tensor of the caller.

#include "meta/session/call.h"

namespace metaprof {

/// What `meta` says of the result, written to `out`, which is resized if it has other sizes (resize_output,
/// aten/src/ATen/native/Resize.cpp).
template <void (*meta)(Call&)>
void into_out(Call& call) {
  meta(call);
  Tensor out = call.tensor("out");
  if (out.sizes() != call.result_tensor().sizes())
    out = metaprof::call<"resize_">(call.session, out, call.result_tensor().sizes());
  call.results[0] = Value(out);
}

}  // namespace metaprof
