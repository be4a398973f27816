#pragma once
// A bent line through points: what a trade of time for memory is summed up as.

#include <utility>
#include <vector>

namespace metaprof {

/// A line of at most two pieces through points (x from 0 to 1): the least squares over all places of the
/// bend.
struct TwoPieces {
  std::vector<double> slopes, intercepts, breakpoints;  ///< breakpoints: 0, the bend if there is one, 1
};
TwoPieces fit_two_pieces(const std::vector<std::pair<double, double>>& points);

}  // namespace metaprof
