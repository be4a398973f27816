#pragma once
// Recorded operator cases (docs/evidence/evidence.md): what the framework did for one call and its backward.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/gzip_lines.h"
#include "validation/recordings/log_line.h"
#include "validation/recordings/recorded_value.h"

namespace metaprof {

struct NamedTensor {
  std::string name;
  RecordedValue value;  ///< a tensor or none
};

struct RecordedNode {
  std::string name;
  std::vector<std::string> edges;  ///< "2.0" (node 2, its input 0) or "None"
};

struct RecordedSaved {
  std::string node_name;
  size_t node = 0;
  std::string name;
  RecordedValue value;  ///< a tensor, a list of them, or none
};

struct RecordedCase {
  std::string name;    ///< "shapes/linear/bf16/8x512-768-3072"
  std::string device;  ///< "h200", "cpu": the name of a device profile
  std::string dtype;   ///< of the case: "bf16"
  std::string file;
  int64_t line = 0;  ///< of the file, where the case begins
  bool reads_device_memory = false;
  bool has_nodes = false;  ///< the graph was recorded
  bool has_saved = false;  ///< … and so was what its nodes saved
  bool has_backward = false;
  /// The only implementation of attention that was allowed: "flash", "efficient", "math", "cudnn"; empty: all.
  std::string attention;
  std::string backward_fails;  ///< the framework's own error
  std::vector<NamedTensor> inputs, outputs, incoming, gradients;
  std::vector<LogLine> forward, backward;
  std::vector<std::string> roots;
  std::vector<RecordedNode> nodes;
  std::vector<RecordedSaved> saved;
  std::shared_ptr<const std::string> text;  ///< the block, into which lines look
};

/// Reads a recording case by case.
class CaseLog {
 public:
  explicit CaseLog(const std::string& path) : lines_(path, "recorded cases of operators") {}

  /// The next case; false at the end. Errors name file and line.
  bool next(RecordedCase& recorded);

 private:
  bool read_block(std::string& text, int64_t& first_line);

  GzipLines lines_;
  std::string pending_;  // the "= NAME" line that ended the block before
  int64_t pending_line_ = 0;
};

}  // namespace metaprof
