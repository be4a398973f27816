#pragma once
// Real numbers for a run on tensors without data: every operator that reaches a kernel is computed by the CPU
// kernel of libtorch of the same name, on memory with our geometry. Composite operators and derivative
// formulas stay ours, so that numbers test both. The host's memory holds the numbers whatever device the
// session describes.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "meta/session/backend.h"
#include "meta/session/call.h"
#include "tests/libtorch/no_numbers.h"

namespace metaprof {

/// Gives a session numbers for as long as this lives. A call that libtorch refuses is a NoNumbers; one where
/// it says that an argument is wrong, too.
class CpuNumbers final : public Backend {
 public:
  explicit CpuNumbers(Session& session);
  ~CpuNumbers() override;
  CpuNumbers(const CpuNumbers&) = delete;

  /// The tensor with its data, as libtorch sees it; shares our memory. Memory that nothing has written yet is
  /// full of NaN (integers: -1).
  at::Tensor of(const Tensor& tensor);

  /// libtorch's own results for these arguments, one per argument of the schema: what a composite operator
  /// must come to.
  std::vector<c10::IValue> libtorch_results(const Operator& op, std::span<const Value> arguments);

  /// Where a result of libtorch had other strides, dtype, sizes or aliases than ours: "aten::add.Tensor,
  /// result 0: strides (1 2), libtorch has (2 1)".
  const std::vector<std::string>& differences() const { return differences_; }
  /// Bytes of all buffers that hold numbers.
  int64_t live_bytes();

  void run(Call& call) override;
  void wrapped(const Tensor& tensor, const Value& number) override;
  /// What random operators draw from here on.
  static void seed(uint64_t seed);

 private:
  c10::Storage& buffer_of(const Storage& storage, int64_t bytes);
  void follow_trace();
  std::vector<c10::IValue> as_arguments(const Operator& op, std::span<const Value> arguments);
  void take_results(Call& call, const std::vector<c10::IValue>& before, std::vector<c10::IValue> results);
  void take(Call& call, size_t index, const Tensor& ours, const at::Tensor& theirs);
  Value taken(Call& call, size_t index, const Value& ours, const c10::IValue& theirs);

  Session& session_;
  std::array<Backend*, kDeviceTypes> before_;
  int depth_ = 0;          // > 0: inside a kernel, whose inner calls need no numbers
  size_t next_event_ = 0;  // of the trace, not seen yet
  std::unordered_map<uint32_t, c10::Storage> buffers_;  // by storage id
  std::vector<std::string> differences_;
};

}  // namespace metaprof
