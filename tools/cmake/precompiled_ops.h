// precompiled.h for files of operators: also what every record and formula reads.

#pragma once

#include "meta/autograd/engine/backward.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"
#include "tools/cmake/precompiled.h"
