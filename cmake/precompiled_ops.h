// precompiled.h for files of operators: also what every record and formula reads.

#pragma once

#include "cmake/precompiled.h"
#include "meta/autograd/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
