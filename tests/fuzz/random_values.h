#pragma once
// Constants, tensors and operands that are now and then wrong: what generated calls and changed programs are made of.

#include "meta/op/schema.h"
#include "program/program.h"
#include "tests/fuzz/random.h"

namespace metaprof {

/// Small ones as a rule; else negative, or as large as 64 bits allow.
int64_t random_integer(Random& random);
double random_real(Random& random);
/// Of a tensor as programs have them, some without elements, broadcast, or too large.
TensorFacts random_tensor(Random& random);
/// A constant of any kind, lists among them.
Value random_constant(Random& random);
/// One value or a list of those that the graph has; a constant where it has none.
Operand random_tensors(Random& random, size_t values, bool list);
/// Anything: kinds that no schema asks for, too.
Operand random_operand(Random& random, size_t values);
/// What the schema asks for, mostly.
Operand operand_for(Random& random, const Argument& argument, size_t values);

}  // namespace metaprof
