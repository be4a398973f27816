#pragma once
// Numbers that are assigned to a part of a tensor (`mask[:, 4:] = 0`), as the framework's compiler traces them.

#include "meta/platform/framework.h"
#include "program/program.h"

namespace metaprof {

/// The part is filled with the number. Until 2.14 the number is a tensor of the host's for the compiler, which is left in
/// the program; from 2.15 on it is none (torch/csrc/autograd/python_variable_indexing.cpp; traced by 2.11 and 2.15; what
/// lies between is taken to be as 2.11). Source lines that call
/// `fill_` or `copy_` assign nothing.
Program with_assigned_numbers(Program program, const Framework& framework);

}  // namespace metaprof
