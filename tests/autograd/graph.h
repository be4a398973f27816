#pragma once
// A session and short words for small graphs.

#include <gtest/gtest.h>

#include "core/error.h"
#include "meta/autograd/engine/engine.h"
#include "meta/autograd/graph/node.h"
#include "meta/ops/all.h"
#include "meta/ops/rules/formulas.h"
#include "meta/platform/platform.h"
#include "tests/autograd/live_bytes.h"

namespace metaprof {

class Graph : public ::testing::Test {
 protected:
  Tensor tensor(std::initializer_list<int64_t> sizes, DType dtype = DType::f32) {
    return session_->empty(Sizes(sizes), dtype);
  }
  Tensor leaf(std::initializer_list<int64_t> sizes, DType dtype = DType::f32) {
    Tensor made = tensor(sizes, dtype);
    made->requires_grad = true;
    return made;
  }
  /// Backward from one tensor, with a gradient of ones.
  void run_backward(const Tensor& root, const BackwardOptions& options = {}) {
    const Tensor roots[] = {root};
    const Tensor ones[] = {tensor_like(root)};
    backward(*session_, roots, ones, {}, options);
  }
  Gradients run_grad(const Tensor& root, std::initializer_list<Tensor> inputs,
                     const BackwardOptions& options = {}) {
    const Tensor roots[] = {root};
    const Tensor ones[] = {tensor_like(root)};
    return grad(*session_, roots, {inputs.begin(), inputs.size()}, ones, options);
  }
  Tensor tensor_like(const Tensor& other) {
    return session_->empty(other.sizes(), other.dtype(), other.device());
  }

  size_t mark() const { return session_->trace.events.size(); }
  /// CallNames of the nodes that ran since then, in order.
  std::vector<std::string> nodes_since(size_t begin) const {
    std::vector<std::string> names;
    const Trace& trace = session_->trace;
    for (size_t i = begin; i < trace.events.size(); ++i)
      if (trace.events[i].kind == Event::Kind::node)
        names.emplace_back(trace.text(trace.nodes[trace.events[i].id].name));
    return names;
  }
  /// Operators that were called since then by formulas, hooks or the engine itself, in order; not those
  /// inside.
  std::vector<std::string> calls_since(size_t begin) const {
    std::vector<std::string> names;
    const Trace& trace = session_->trace;
    for (size_t i = begin; i < trace.events.size(); ++i) {
      if (trace.events[i].kind != Event::Kind::call) continue;
      const CallRecord& call = trace.calls[trace.events[i].id];
      if (call.depth == 0) names.emplace_back(trace.text(call.op).substr(std::string_view("aten::").size()));
    }
    return names;
  }
  int64_t live() const { return live_bytes(*session_); }
  int64_t saved() const { return saved_bytes(*session_); }

  std::unique_ptr<Session> session_ = make_session(platform_named("h200"));
};

using CallNames = std::vector<std::string>;

/// The message of the Error that this throws; a failure if it throws none.
template <class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "is not refused";
  return {};
}

/// The text has this part.
inline void expect_mentions(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

}  // namespace metaprof
