#pragma once
// The batches of an epoch, from the lengths of its samples.

#include <string>
#include <vector>

#include "estimate/results/epoch.h"

namespace metaprof {

/// What is asked of an epoch (`--lengths` and what belongs to it).
struct EpochOptions {
  /// A file, or the text itself: lengths of samples in the order in which they come ("812 93 455"), how often each length
  /// comes ("512:4000,1024:90"; the order is then drawn, always the same), or batches as they are ("8x512 8x640").
  std::string lengths;
  int64_t bucket = 0;  ///< so many batches of samples are sorted by length before batches are made; 0: none
  int64_t max_tokens =
      0;  ///< a batch has as many samples as fit into so many tokens, with padding; 0: --batch
  int64_t empty_cache_every = 0;  ///< steps between calls of torch.cuda.empty_cache(); 0: never

  bool asked() const { return !lengths.empty(); }
};

/// The samples' lengths, or, where these were given as they are, the batches.
struct Lengths {
  std::vector<int64_t> samples;
  std::vector<BatchShape> batches;
};

/// Errors: no such file; a word is none of these; kinds are mixed; nothing is there; more than ten million samples.
Lengths read_lengths(const std::string& lengths);

/// Of `samples` in each, padded to the longest. Errors: a sample is longer than --max-tokens; --bucket or --max-tokens where
/// batches were given as they are.
std::vector<BatchShape> batches_of(const Lengths& lengths, const EpochOptions& options, int64_t samples);

/// Share of the tokens of these batches that are padding.
double padding_of(const Lengths& lengths, const std::vector<BatchShape>& batches);

}  // namespace metaprof
