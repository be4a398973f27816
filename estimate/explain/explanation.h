#pragma once
// Why a request of memory could not be served, by the numbers of PyTorch's own message, and what helps.

#include <string>
#include <vector>

#include "estimate/explain/out_of_memory_message.h"

namespace metaprof {

enum class OutOfMemoryCause {
  too_large,        ///< the request alone is larger than the device, or than what the process may have
  limit,            ///< the process reached what set_per_process_memory_fraction allows; the device has more
  other_processes,  ///< without other processes on the device there would have been room
  pieces,           ///< free and cached memory would have been enough, but no piece of it
  full              ///< the program needs more than the device has
};

struct OutOfMemoryExplanation {
  OutOfMemoryMessage message;
  size_t messages = 1;  ///< in the text, of which this is the last
  OutOfMemoryCause cause = OutOfMemoryCause::full;
  Bytes missing;  ///< to serve this request, beyond all free and cached memory; 0: nothing
  Bytes others;   ///< held by other processes, and by what the message does not name
  Bytes outside;  ///< held by this process outside the allocator: context, kernels, libraries; 0 if not known
  std::string why;                 ///< a sentence or two
  std::vector<std::string> helps;  ///< what to do, the first thing first
};

OutOfMemoryExplanation explain(const OutOfMemoryMessages& messages);

/// "too-large", as JSON has it.
std::string_view to_string(OutOfMemoryCause cause);

}  // namespace metaprof
