#include "estimate/plan/strategies/integer_program.h"

#include "core/error.h"

#ifdef METAPROF_CBC
#include <coin/Cbc_C_Interface.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "core/dynamic_library.h"
#endif

namespace metaprof {

#ifdef METAPROF_CBC

namespace {

// The functions of CBC that are needed; the library is large, and only this strategy wants it.
struct Cbc {
  const DynamicLibrary library{METAPROF_CBC,
                               "install CBC (coinor-libcbc3 on Debian and Ubuntu, coin-or-Cbc on Fedora)"};
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

namespace {

// How CBC is asked. Clp, which solves the relaxed programme for it, ends the process where one of its assertions fails: with another way to
// prepare the programme it comes by other bases.
constexpr const char* kPreparations[] = {"sos", "off"};

IntegerSolution solve_here(const IntegerProgram& program, double seconds, const char* preparation) {
  const std::unique_ptr<Cbc_Model, Deleter> model(cbc().new_model());
  cbc().set_log_level(model.get(), 0);
  load(model.get(), program);
  cbc().set_parameter(model.get(), "log", "0");
  cbc().set_parameter(model.get(), "preprocess", preparation);
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

void send(int to, const void* bytes, size_t count) {
  for (size_t sent = 0; sent < count;) {
    const ssize_t some = write(to, static_cast<const char*>(bytes) + sent, count - sent);
    if (some <= 0) _exit(1);
    sent += static_cast<size_t>(some);
  }
}

bool receive(int from, void* bytes, size_t count) {
  for (size_t got = 0; got < count;) {
    const ssize_t some = read(from, static_cast<char*>(bytes) + got, count - got);
    if (some <= 0) return false;
    got += static_cast<size_t>(some);
  }
  return true;
}

[[noreturn]] void answer(int to, const IntegerProgram& program, double seconds, const char* preparation) {
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);  // an assertion says there that it failed
  const IntegerSolution solution = solve_here(program, seconds, preparation);
  const char found = solution.found ? 1 : 0;
  send(to, &found, sizeof found);
  if (solution.found) {
    send(to, solution.values.data(), solution.values.size() * sizeof(int64_t));
    send(to, &solution.cost, sizeof solution.cost);
    send(to, &solution.bound, sizeof solution.bound);
  }
  _exit(0);
}

double processor_seconds(const rusage& used) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// In a process of its own, which an assertion may end: then nothing. Adds to `used` the processor's seconds that it took.
std::optional<IntegerSolution> solve_apart(const IntegerProgram& program, double seconds,
                                           const char* preparation, double& used) {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("no pipe to the solver ({})", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) fail("no process for the solver ({})", std::strerror(errno));
  if (child == 0) answer(ends[1], program, seconds, preparation);
  close(ends[1]);
  IntegerSolution solution;
  char found = 0;
  bool complete = receive(ends[0], &found, sizeof found);
  if (complete && found != 0) {
    solution.found = true;
    solution.values.resize(program.variables.size());
    complete = receive(ends[0], solution.values.data(), solution.values.size() * sizeof(int64_t)) &&
               receive(ends[0], &solution.cost, sizeof solution.cost) &&
               receive(ends[0], &solution.bound, sizeof solution.bound);
  }
  close(ends[0]);
  rusage taken = {};
  wait4(child, nullptr, 0, &taken);
  used += processor_seconds(taken);
  if (!complete) return std::nullopt;
  return solution;
}

}  // namespace

std::string missing_solver() {
  try {
    cbc();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

IntegerSolution solve(const IntegerProgram& program, double seconds) {
  cbc();  // a library that is missing is an error here, and not in the other process
  IntegerSolution solution;
  double used = 0;
  for (const char* preparation : kPreparations)
    if (auto found = solve_apart(program, seconds, preparation, used)) {
      solution = std::move(*found);
      break;
    }
  solution.seconds = used;
  return solution;
}

#else

std::string missing_solver() {
  return "this metaprof was built without CBC, which solves integer programmes: tools/setup run installs it";
}

IntegerSolution solve(const IntegerProgram&, double) { fail("{}", missing_solver()); }

#endif

}  // namespace metaprof
