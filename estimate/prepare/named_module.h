#pragma once
// Modules of the user's own Python by name: timm:resnet50, torchvision:vit_b_16, transformers:bert-base, model.py:make.

#include <string>

#include "program/program.h"
#include "step/options.h"

namespace metaprof {

/// Whether a name is of that kind.
bool names_module(const std::string& named);

/// The steps that Python captures of it, with the inputs, the precision and the mode of `options`. METAPROF_PYTHON names the
/// Python (else python3 or python of PATH). Errors: there is none; it has not the library; there is no such model or function;
/// what the capture says.
Program captured_module(const std::string& named, const RunOptions& options);

}  // namespace metaprof
