#pragma once
// What layer and root-mean-square normalisation share.

#include <initializer_list>

#include "meta/session/call.h"

namespace metaprof {

/// An input as rows to normalise.
struct NormalizedRows {
  int64_t count;     ///< rows
  int64_t width;     ///< elements of a row
  Sizes statistics;  ///< sizes of mean and inverse deviation: one per row
};
/// An Error if `shape`, weight or bias do not fit the input.
NormalizedRows normalized_rows(const Call& call, const Tensor& input, const Sizes& shape);

/// Rows of the partial sums of the parameters' gradients; 0: they are summed in one go.
int64_t partial_gradient_rows(const Call& call, const NormalizedRows& rows);
/// Replaces the parameters' gradients by sums of partial ones where there are so many rows that the kernel
/// makes those.
void summed_parameter_gradients(Call& call, const NormalizedRows& rows,
                                std::initializer_list<size_t> results);

/// A row-major result, or an undefined one.
inline void output_if(Call& call, bool wanted, SizesView sizes, DType dtype) {
  if (wanted) {
    call.output(sizes, dtype);
  } else {
    call.no_output();
  }
}

}  // namespace metaprof
