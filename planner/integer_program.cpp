#include "planner/integer_program.h"

#include "core/error.h"

#ifdef METAPROF_HAVE_CBC
#include <coin/Cbc_C_Interface.h>

#include <cmath>
#include <memory>
#include <string>
#endif

namespace metaprof {

#ifdef METAPROF_HAVE_CBC

namespace {

struct Deleter {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

// The matrix by columns, as CBC takes it.
struct Columns {
  std::vector<int> starts, rows;
  std::vector<double> factors;
};

Columns columns_of(const IntegerProgram& program) {
  std::vector<std::vector<std::pair<int, double>>> of(program.variables.size());
  for (size_t row = 0; row < program.rows.size(); ++row)
    for (const auto& [variable, factor] : program.rows[row].terms)
      of[size_t(variable)].emplace_back(static_cast<int>(row), factor);
  Columns columns;
  for (const auto& column : of) {
    columns.starts.push_back(static_cast<int>(columns.rows.size()));
    for (const auto& [row, factor] : column) {
      columns.rows.push_back(row);
      columns.factors.push_back(factor);
    }
  }
  columns.starts.push_back(static_cast<int>(columns.rows.size()));
  return columns;
}

void load(Cbc_Model* model, const IntegerProgram& program) {
  const Columns columns = columns_of(program);
  std::vector<double> least(program.variables.size()), most, costs, row_least, row_most;
  for (const IntegerProgram::Variable& variable : program.variables) {
    most.push_back(static_cast<double>(variable.most));
    costs.push_back(variable.cost);
  }
  for (const IntegerProgram::Row& row : program.rows) {
    row_least.push_back(row.least);
    row_most.push_back(row.most);
  }
  Cbc_loadProblem(model, static_cast<int>(program.variables.size()), static_cast<int>(program.rows.size()),
                  columns.starts.data(), columns.rows.data(), columns.factors.data(), least.data(),
                  most.data(), costs.data(), row_least.data(), row_most.data());
  for (size_t i = 0; i < program.variables.size(); ++i) Cbc_setInteger(model, static_cast<int>(i));
}

}  // namespace

bool can_solve_integer_programs() { return true; }

IntegerSolution solve(const IntegerProgram& program, double seconds) {
  const std::unique_ptr<Cbc_Model, Deleter> model(Cbc_newModel());
  Cbc_setLogLevel(model.get(), 0);
  load(model.get(), program);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "ratioGap", "0");
  Cbc_setParameter(model.get(), "allowableGap", "0");
  Cbc_setParameter(model.get(), "sec", std::to_string(seconds).c_str());
  Cbc_solve(model.get());
  IntegerSolution solution;
  const double* values = Cbc_bestSolution(model.get());
  if (!values || Cbc_isProvenInfeasible(model.get())) return solution;
  solution.found = true;
  for (size_t i = 0; i < program.variables.size(); ++i) {
    solution.values.push_back(std::llround(values[i]));
    solution.cost += program.variables[i].cost * static_cast<double>(solution.values.back());
  }
  solution.bound =
      Cbc_isProvenOptimal(model.get()) ? solution.cost : Cbc_getBestPossibleObjValue(model.get());
  return solution;
}

#else

bool can_solve_integer_programs() { return false; }

IntegerSolution solve(const IntegerProgram&, double) {
  fail("this metaprof was built without CBC, which solves integer programmes: tools/setup run installs it");
}

#endif

}  // namespace metaprof
