#pragma once
// What the framework's compiler writes in place of some calls while it traces: decompositions that it takes
// above autograd (torch/_decomp/decompositions.py, what is registered there for CompositeImplicitAutograd and
// Autograd).

#include "meta/platform/framework.h"
#include "program/program.h"

namespace metaprof {

/// Batch norm is the framework's own, not cuDNN's, and says that it writes its running statistics; dropout
/// that drops nothing is a copy, or its input, as the version has it.
Program decomposed_for_compiler(Program program, const Framework& framework);

}  // namespace metaprof
