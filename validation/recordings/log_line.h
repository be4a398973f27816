#pragma once
// One line of a recording's log. docs/evidence/evidence.md has the grammar, which logs of steps and of operator cases
// share.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meta/allocator/snapshot.h"

namespace metaprof {

struct LogLine {
  enum class Kind : uint8_t {
    begin,
    end,
    request,
    give_back,
    completed,
    segment,
    out_of_memory,
    mark,
    title
  };
  Kind kind = Kind::mark;
  SegmentEvent::Kind segment = SegmentEvent::Kind::allocate;  ///< of Kind::segment
  int depth = 0;               ///< of what begins or ends; of anything else: how many operators are open
  int64_t number = 0;          ///< of the line in its file
  std::string_view name = {};  ///< begin: "aten::add.Tensor", "evaluate AddBackward0"
  std::string_view text = {};  ///< begin: inputs; end: outputs; mark, title: what stands behind the sign
  int64_t block = 0;           ///< its address; in operator cases the number of its storage
  int64_t bytes = 0;           ///< of requests as asked for; of segments their size
  StreamId stream = 0;         ///< in the order of appearance
  PoolId pool = {};
};

/// Reads the lines of one log, or of one case of a log, in their order.
class LogReader {
 public:
  /// `blocks`: base of the numbers of blocks, 16 for addresses.
  explicit LogReader(int blocks) : base_(blocks) {}

  /// The result looks into `line`. Errors, without the place: it is no line of a log; an operator ends that has
  /// not begun.
  LogLine read(std::string_view line, int64_t number);
  /// How many operators and nodes are open.
  int depth() const { return depth_; }

 private:
  const int base_;
  int depth_ = 0;
};

/// What is at work: the operators and nodes that have begun and not ended, the outermost first.
class AtWork {
 public:
  void begin(std::string_view name) { names_.emplace_back(name); }
  void end() {
    if (!names_.empty()) names_.pop_back();
  }
  void pass(const LogLine& line) {
    if (line.kind == LogLine::Kind::begin) begin(line.name);
    if (line.kind == LogLine::Kind::end) end();
  }
  /// " in aten::linear > aten::addmm"; empty: nothing is.
  std::string text() const;

 private:
  std::vector<std::string> names_;
};

}  // namespace metaprof
