#pragma once
// The layers of a model, as --checkpoint names them.

#include <string>

#include "program/program.h"

namespace metaprof {

/// The outermost modules that are numbered: "model.layers.*". Empty: there are none, or more than one pattern says.
std::string repeated_modules(const Program& program);

}  // namespace metaprof
