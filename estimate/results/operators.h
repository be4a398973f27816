#pragma once
// What is known of operators, and which operators of models are known.

#include <cstdint>
#include <string>
#include <vector>

namespace metaprof {

struct OperatorRow {
  std::string name;  ///< "aten::add.Tensor"
  std::string schema;
  std::string summary;  ///< one line, in maths
  bool composite = false;
  std::string node;                      ///< of its autograd node; empty: not differentiable by itself
  std::vector<std::string> derivatives;  ///< "self, other reads self": a line per row of the table
  std::vector<std::string> kernels;      ///< devices that do more than allocate the results
  std::string flops;                     ///< "formula", "free" or "by its calls"
  std::vector<std::string> facts;        ///< "view", "in-place", "random" …
};

/// An operator that models call.
struct CoverageRow {
  std::string op;
  bool known = false;
  int64_t calls = 0;
  std::vector<std::string> models;  ///< that call it
};

struct Coverage {
  int64_t models = 0;
  int64_t models_known = 0;            ///< all of whose operators are known
  std::vector<CoverageRow> operators;  ///< unknown ones first, then by calls

  int64_t calls() const;
  int64_t known_calls() const;
  int64_t known_operators() const;
};

}  // namespace metaprof
