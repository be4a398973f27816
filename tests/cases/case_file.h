#pragma once
// Text cases: a model in a few lines, and what the per-node pass must say of it. See tests/cases/README.md.

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "program/program.h"
#include "step/step.h"

namespace metaprof {

/// "expect conv in=1536 out=2048": figures that a row must have.
struct Expectation {
  std::string node;  ///< as in the table, or "total"
  std::map<std::string, int64_t> figures;
  int line = 0;
};

struct TextCase {
  std::string name;
  std::string file;
  Program program;
  StepOptions options;
  std::string device = "h200";
  std::string granularity = "module";
  std::string recorded;  ///< a recorded operator case that saves the same, apart from its inputs
  std::vector<Expectation> expectations;
};

inline void PrintTo(const TextCase& c, std::ostream* out) { *out << c.file << " " << c.name; }

/// Errors: a line that is no line of a case, with its number.
std::vector<TextCase> read_cases(const std::string& file);

}  // namespace metaprof
