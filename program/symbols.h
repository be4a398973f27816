#pragma once
// Symbolic sizes of a program: giving symbols other values than those with which it was exported.

#include <string>

#include "program/program.h"

namespace metaprof {

/// Gives symbols values and evaluates every symbolic size, stride, offset and number anew, in sub-graphs too.
/// Symbols that are not named keep their values. Errors: no such symbol, a value outside the exported range,
/// an expression that cannot be evaluated, sizes that are negative or too large.
void bind_symbols(Program& program, const SymbolValues& values);

/// The symbols' values for which an input of the program has the given sizes. Errors: no such input, another
/// number of dimensions, a dimension that is fixed in the file, or that no integer value gives.
SymbolValues symbols_for(const Program& program, const std::string& input, SizesView sizes);
/// The same for an input that is a number. Errors: no such input, or its value is fixed in the file.
SymbolValues symbols_for_number(const Program& program, const std::string& input, int64_t number);

/// Errors: a size, stride or offset is negative; the number of elements or the bytes exceed 64 bits.
void check_sizes(const ValueFacts& value);

}  // namespace metaprof
