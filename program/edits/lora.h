#pragma once
// LoRA as peft 0.19 adds it (tuners/lora/layer.py, bnb.py): beside chosen linear modules two narrow ones, and of the whole
// model nothing else trains.

#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// Defaults are those of peft's LoraConfig.
struct LoraOptions {
  int64_t rank = 8;
  double alpha = 8, dropout = 0;
  std::vector<std::string>
      targets;              ///< last names of modules, or ends of their paths; empty: those that are usual
  bool all_linear = false;  ///< all but the head
  bool in_32bits = true;    ///< adapters of 32 bits in every precision (autocast_adapter_dtype)
};

/// "r=16,alpha=32,dropout=0.05,targets=q_proj,v_proj,dtype=model"; "targets=all-linear". Errors: an unknown word, a value
/// that it cannot have.
LoraOptions parse_lora(std::string_view text);

/// Adds the adapters and freezes the rest. `autocast`: the program is to be run under it. Errors: none are
/// named, and the model has no usual ones; no linear module has such a name; one is not called as a module; the program is a run that was captured.
void add_lora(Program& program, const LoraOptions& options, bool autocast);

}  // namespace metaprof
