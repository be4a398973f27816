#pragma once
// Sizes that follow from data, which tensors here do not have: whoever runs a program says what it knows of them.

#include "meta/session/call.h"

namespace metaprof {

/// The trace says of the call that sizes in it are an assumption.
inline void note_assumed(const Call& call) {
  if (call.index < call.session.trace.calls.size()) call.session.trace.calls[call.index].assumed = true;
}

/// A size of the call's first result as the program says it; 0: it says nothing, and the trace says of the call that
/// its size is an assumption.
inline int64_t size_by_data(const Call& call, size_t dim = 0) {
  const SizesView sizes = call.session.sizes_by_data.first_result;
  if (sizes.empty()) note_assumed(call);
  return dim < sizes.size() ? sizes[dim] : 0;
}

/// Within its scope, operators whose results' sizes follow from data give a result that begins with `size`.
class WithSizeByData {
 public:
  WithSizeByData(Session& session, int64_t size)
      : size_{size}, scope_(session.sizes_by_data, {SizesView(size_), session.sizes_by_data.assumed}) {}

 private:
  const Sizes size_;
  Scoped<SizesByData> scope_;
};

}  // namespace metaprof
