#include "estimate/plan/strategies/integer_program.h"

#include "core/error.h"

#ifdef METAPROF_CBC
#include <coin/Cbc_C_Interface.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/dynamic_library.h"
#endif

namespace metaprof {

#ifdef METAPROF_CBC

namespace {

// The functions of CBC that are needed; the library is large, and only this strategy wants it.
struct Cbc {
  const DynamicLibrary library{METAPROF_CBC};
  decltype(&Cbc_newModel) new_model = library.function<decltype(Cbc_newModel)>("Cbc_newModel");
  decltype(&Cbc_deleteModel) delete_model = library.function<decltype(Cbc_deleteModel)>("Cbc_deleteModel");
  decltype(&Cbc_setLogLevel) set_log_level = library.function<decltype(Cbc_setLogLevel)>("Cbc_setLogLevel");
  decltype(&Cbc_loadProblem) load_problem = library.function<decltype(Cbc_loadProblem)>("Cbc_loadProblem");
  decltype(&Cbc_setInteger) set_integer = library.function<decltype(Cbc_setInteger)>("Cbc_setInteger");
  decltype(&Cbc_setParameter) set_parameter =
      library.function<decltype(Cbc_setParameter)>("Cbc_setParameter");
  decltype(&Cbc_solve) solve = library.function<decltype(Cbc_solve)>("Cbc_solve");
  decltype(&Cbc_bestSolution) best_solution =
      library.function<decltype(Cbc_bestSolution)>("Cbc_bestSolution");
  decltype(&Cbc_isProvenInfeasible) is_proven_infeasible =
      library.function<decltype(Cbc_isProvenInfeasible)>("Cbc_isProvenInfeasible");
  decltype(&Cbc_isProvenOptimal) is_proven_optimal =
      library.function<decltype(Cbc_isProvenOptimal)>("Cbc_isProvenOptimal");
  decltype(&Cbc_getBestPossibleObjValue) get_best_possible_obj_value =
      library.function<decltype(Cbc_getBestPossibleObjValue)>("Cbc_getBestPossibleObjValue");
};

const Cbc& cbc() {
  static const Cbc loaded;
  return loaded;
}

struct Deleter {
  void operator()(Cbc_Model* model) const { cbc().delete_model(model); }
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
  cbc().load_problem(model, static_cast<int>(program.variables.size()), static_cast<int>(program.rows.size()),
                     columns.starts.data(), columns.rows.data(), columns.factors.data(), least.data(),
                     most.data(), costs.data(), row_least.data(), row_most.data());
  for (size_t i = 0; i < program.variables.size(); ++i) cbc().set_integer(model, static_cast<int>(i));
}

}  // namespace

bool can_solve_integer_programs() { return true; }

IntegerSolution solve(const IntegerProgram& program, double seconds) {
  const std::unique_ptr<Cbc_Model, Deleter> model(cbc().new_model());
  cbc().set_log_level(model.get(), 0);
  load(model.get(), program);
  cbc().set_parameter(model.get(), "log", "0");
  cbc().set_parameter(model.get(), "ratioGap", "0");
  cbc().set_parameter(model.get(), "allowableGap", "0");
  cbc().set_parameter(model.get(), "sec", std::to_string(seconds).c_str());
  cbc().solve(model.get());
  IntegerSolution solution;
  const double* values = cbc().best_solution(model.get());
  if (!values || cbc().is_proven_infeasible(model.get())) return solution;
  solution.found = true;
  for (size_t i = 0; i < program.variables.size(); ++i) {
    solution.values.push_back(std::llround(values[i]));
    solution.cost += program.variables[i].cost * static_cast<double>(solution.values.back());
  }
  solution.bound =
      cbc().is_proven_optimal(model.get()) ? solution.cost : cbc().get_best_possible_obj_value(model.get());
  return solution;
}

#else

bool can_solve_integer_programs() { return false; }

IntegerSolution solve(const IntegerProgram&, double) {
  fail("this metaprof was built without CBC, which solves integer programmes: tools/setup run installs it");
}

#endif

}  // namespace metaprof
