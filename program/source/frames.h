#pragma once
// Which functions of the model's source run a program's calls, and in which of their statements: what Python
// would show if it stopped there. Found from the stack trace that a `.pt2` has for every call;
// docs/explanation/lifetimes.md says how.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace metaprof {

struct Statement {
  int frame;                                 ///< index into SourceFrames::frames
  int line;                                  ///< its first
  int last_node;                             ///< the last call that it makes
  std::vector<std::string> names;            ///< that it binds
  std::vector<std::string> names_in_region;  ///< that a region binds which stands here
  std::string container;                     ///< to which it appends (`xs.append(f(x))`); empty: to none
  std::vector<std::string> modules;          ///< keys of modules called from it
  std::vector<std::string> called;           ///< and their names
  std::string code;                          ///< the lines of it that were seen
  bool of_library;                           ///< of PyTorch, or a library of models that was measured
};

/// One execution of a function.
struct Frame {
  int parent;     ///< -1: none
  int last_node;  ///< the last call made before it returns
  std::vector<int> statements;
  std::string
      module;  ///< path of the module whose forward this is; empty: of the model itself, or no forward
};

/// Where one call is made: a frame and a statement per level of its stack, outermost first.
struct CallSite {
  std::vector<int> frames, statements;
};

struct SourceFrames {
  std::vector<Frame> frames;
  std::vector<Statement> statements;
  std::vector<CallSite> sites;  ///< per node of the graph
};

/// Finds the frames of a program's graphs. What it needs to know of the whole program is found once.
class FrameFinder {
 public:
  explicit FrameFinder(const Program& program);
  FrameFinder(const FrameFinder&) = delete;
  ~FrameFinder();

  /// Of the program's graph, or of one inside it.
  SourceFrames frames_of(const Graph& graph) const;

 private:
  class StatementLines;
  class Unwinder;
  const Program& program_;
  const std::unique_ptr<const StatementLines> lines_;
};

/// Names that a statement binds: "x", or "a", "b" of a tuple. Empty if the line is no assignment, or assigns
/// an element of something.
std::vector<std::string> bound_names(std::string_view code);

/// The list that a statement appends to: "xs" of "xs.append(f(x))". Empty: it does not.
std::string appended_to(std::string_view code);

/// A letter, a digit or "_".
bool is_of_name(char c);

/// True if the word stands in the code by itself.
bool contains_word(std::string_view code, std::string_view word);

/// How often "exp(" stands in the code by itself.
int times_called(std::string_view code, std::string_view name);

/// By which the source calls it: "exp" of "aten::exp", "sum" of "aten::sum.dim_IntList".
std::string_view name_of_call(const GraphNode& call);

}  // namespace metaprof
