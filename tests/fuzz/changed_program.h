#pragma once
// Real programs with some facts and arguments changed: other kinds, values, sizes, dtypes.

#include "program/program.h"
#include "tests/fuzz/random.h"

namespace metaprof {

/// One to four changes. The program stays one that its text can say: values are made before they are used.
Program changed_program(Program program, Random& random);

}  // namespace metaprof
