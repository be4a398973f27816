#pragma once
// How a call is written into a trace.

#include "meta/tensor/tensor.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// An argument or a result; an undefined tensor, too, has its record.
void add_tensor(Trace& trace, const Tensor& tensor);

/// A call ends, whether it returns or not.
class EndOfCall {
 public:
  EndOfCall(Trace& trace, uint32_t index) : trace_(trace), index_(index) {}
  ~EndOfCall() { trace_.add({.kind = Event::Kind::end, .id = index_}); }
  EndOfCall(const EndOfCall&) = delete;

 private:
  Trace& trace_;
  uint32_t index_;
};

}  // namespace metaprof
