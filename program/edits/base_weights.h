#pragma once
// Weights of linear modules in 4 or 8 bits, as bitsandbytes 0.50 keeps them (functional.py, nn/modules.py).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace metaprof {

/// `word`: "nf4", "fp4", their "-double" (scales in 8 bits, too) or "int8". All linear modules but the head keep their weights so, which then do not train. `autocast`: the dtype that the program
/// is to be run under, in which modules of 4 bits compute. `rest_trains`: biases do. Errors: there are no such modules; the program is a run that was
/// captured.
void keep_base_weights(Program& program, std::string_view word, std::optional<DType> autocast,
                       bool rest_trains);

}  // namespace metaprof
