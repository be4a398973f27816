#pragma once
// Which cards a model can be trained on and generate on, and how. docs/how_to/rent.md explains the figures to users.

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/units.h"
#include "estimate/results/input_row.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// Options as they are typed: ("precision", "bf16").
using TypedOptions = std::vector<std::pair<std::string, std::string>>;

/// One way to use a model, and what one sample takes where memory has no limit.
struct RentMethod {
  std::string name;         ///< "full", "lora", "qlora", "generate"
  bool recomputed = false;  ///< with activation checkpointing of each layer
  /// The steps, all of which must fit: of generation the prompt's call, and that of the last token.
  std::vector<TypedOptions> steps;
  std::string error = {};                       ///< why it cannot be run; empty: it can
  std::array<Bytes, kCategories> at_peak = {};  ///< allocated, by what it is
  Bytes allocated = {}, reserved = {};          ///< peaks
  std::optional<Bytes> runs_from = {};          ///< as ProfileReport
  Bytes unsharded =
      {};  ///< of training: what forward and backward take at least besides weights, gradients and states
};

struct RentCell {
  std::optional<int64_t> largest;  ///< batch; nothing: not even 1
  bool unbounded = false;          ///< the largest that was tried fits, too
  Bytes reserved;                  ///< with the largest; with 1 if that does not fit
};

struct RentRow {
  std::string device, title;
  Bytes memory, available;      ///< the device's, and what of it the allocator can have
  bool bf16 = true;             ///< it has hardware for bf16
  std::vector<RentCell> cells;  ///< by method
  std::optional<int64_t>
      paged;  ///< requests of the whole context at once, with a paged cache; nothing: no cache
  /// At the very least, for full fine-tuning with everything sharded over them, of one sample each; nothing: what is not
  /// sharded does not fit.
  std::optional<int64_t> cards;
};

struct RentReport {
  std::string model, framework;
  int64_t parameters = 0;
  std::string dtype;     ///< of --precision
  std::string adapters;  ///< of --lora, with the modules that get them
  std::string optimizer;
  std::string loss;                  ///< of --loss
  std::vector<InputRow> trained_on;  ///< inputs of a training step with one sample
  int64_t context = 0;               ///< tokens, prompt and answer together
  Bytes cache;                       ///< keys and values of that many
  std::vector<RentMethod> methods;
  std::vector<RentRow> rows;  ///< in the order that was asked for; all: the most memory first
  std::vector<std::string> notes;

  bool any_fits() const;
};

}  // namespace metaprof
