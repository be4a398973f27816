#pragma once
// How many parameters and buffers a model has. Tied ones count once.

#include <map>
#include <string>
#include <vector>

#include "meta/trace/trace.h"

namespace metaprof {

struct TensorTotals {
  int64_t count = 0;  ///< elements
  Bytes bytes;
  int64_t tensors = 0;
};

struct Parameters {
  TensorTotals all, trainable, buffers;
  std::vector<std::vector<std::string>> tied;  ///< names of one parameter, the first registered first
  /// Elements by module, those of the modules inside it included: what
  /// `sum(p.numel() for p in module.parameters())` says of it.
  std::map<std::string, int64_t, std::less<>> by_module;
};

Parameters parameters_of(const Trace& trace);
/// Parameters::all.bytes, and nothing else.
Bytes bytes_of_parameters(const Trace& trace);

}  // namespace metaprof
