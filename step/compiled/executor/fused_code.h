#pragma once
// Elementwise operators that run as one kernel: it reads what comes in, writes what goes out, and what is in between
// has no memory. Where a session computes numbers, the operators run one by one: numbers have to be somewhere.

#include <optional>

#include "meta/session/call.h"
#include "step/compiled/executor/code.h"

namespace metaprof::ir {

class FusedCode final : public NodeCode {
 public:
  explicit FusedCode(Code code) : code_(std::move(code)) {}
  std::vector<metaprof::Value> run(Session& session, std::vector<metaprof::Value> inputs) const override;

 private:
  /// Nothing: sizes of the results differ, so that no kernel computes them.
  std::optional<std::vector<metaprof::Value>> run_as_one(Session& session,
                                                         const std::vector<metaprof::Value>& inputs) const;
  Code code_;
};

}  // namespace metaprof::ir
