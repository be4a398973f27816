#pragma once
// The door for `.pt2` archives, as torch.export.save of PyTorch 2.5 to 2.11 writes them (checked with 2.11,
// schema 8.17). The weights are never read, and nothing of the file is executed or written anywhere.

#include <string>

#include "program/program.h"

namespace metaprof {

struct Pt2Options {
  std::string program = {};   ///< which program, if the archive holds several; empty: the only one
  SymbolValues symbols = {};  ///< values for symbolic sizes, in place of those of the export
};

/// Reads a program. What can be told with a doubt is in `Program::warnings`; what cannot is an Error of one
/// line that names the file, the place and a remedy. Operators are not looked up: the program may hold calls
/// that nobody knows, and arguments of kinds that the reader does not know (Operand::Kind::unknown).
Program read_pt2(const std::string& path, const Pt2Options& options = {});

}  // namespace metaprof
