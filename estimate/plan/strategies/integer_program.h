#pragma once
// Linear programmes in whole numbers, solved by CBC (COIN-OR), where it is installed.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace metaprof {

struct IntegerProgram {
  /// A whole number from 0 to `most`.
  struct Variable {
    double cost = 0;  ///< of one
    int64_t most = 1;
  };
  /// `least` ≤ Σ factor × variable ≤ `most`.
  struct Row {
    std::vector<std::pair<int, double>> terms;  ///< index of a variable, factor
    double least = 0, most = 0;
  };
  std::vector<Variable> variables;
  std::vector<Row> rows;
};

struct IntegerSolution {
  bool found = false;
  std::vector<int64_t> values;  ///< per variable
  double cost = 0;              ///< the smallest that was found
  double bound = 0;             ///< none costs less
  double seconds = 0;           ///< of a processor, that the solver took
  /// How far from the cheapest it may be, as a share of its cost; 0: it is proven to be the cheapest.
  double gap() const { return cost > bound && cost > 0 ? (cost - bound) / cost : 0; }
};

/// Why there is no solver, and what to do: it was left out of this build, or its library is not on this machine. Empty: there
/// is one.
std::string missing_solver();

/// The values of least cost, or the best ones after so many seconds; none where the solver fails. It runs in a process of its own: an
/// assertion of the library that fails ends that one alone. Errors: there is no solver; no process can be started.
IntegerSolution solve(const IntegerProgram& program, double seconds);

}  // namespace metaprof
