#pragma once
// Functions of a few additions on small vectors, run eagerly or as recorded graphs in a pool that uses addresses
// again: what a tree of graphs must get right shows in the numbers.

#include <array>
#include <set>

#include "step/cudagraphs/tree.h"

namespace metaprof {

using Numbers = std::array<double, 2>;

/// Values are numbered: the inputs, then what the steps make.
struct SmallFunction {
  enum class Kind : uint8_t {
    sum,     ///< a new value, left + 2 * right
    add_to,  ///< left += right, in place
    view     ///< left again, as a value of its own
  };
  struct Step {
    Kind kind = Kind::sum;
    size_t left = 0, right = 0;
  };
  size_t inputs = 0;
  std::vector<Step> steps;
  std::vector<size_t> outputs;  ///< numbers of values

  /// Per value: the value whose memory it is.
  std::vector<size_t> owners() const;
  /// Inputs whose memory some step adds to, through views as well.
  std::vector<size_t> written() const;
};

/// Numbers at addresses, and what functions do to them.
class Arithmetic {
 public:
  virtual ~Arithmetic() = default;
  virtual void set(uint64_t address, Numbers numbers) = 0;
  virtual Numbers get(uint64_t address) = 0;
  virtual void copy(uint64_t to, uint64_t from) = 0;
  /// result = left + 2 * right
  virtual void sum(uint64_t result, uint64_t left, uint64_t right) = 0;
  /// left += right; `way` picks one of the ways in which a program can write that.
  virtual void add_to(uint64_t left, uint64_t right, size_t way) = 0;
};
/// Additions of C++.
std::unique_ptr<Arithmetic> plain_arithmetic();

/// Memory as addresses with numbers in it; what is not in the pool goes back when its last handle goes.
class NumbersRunner final : public GraphRunner {
 public:
  explicit NumbersRunner(std::vector<SmallFunction> functions,
                         std::unique_ptr<Arithmetic> arithmetic = plain_arithmetic())
      : functions_(std::move(functions)), arithmetic_(std::move(arithmetic)) {}

  MemoryHandle make(Numbers numbers);
  Numbers numbers(const MemoryHandle& memory) const { return arithmetic_->get(memory->address); }

  MemoryHandles run_eagerly(FunctionId function, MemoryHandles inputs) override;
  MemoryHandles warm_up(FunctionId function, MemoryHandles inputs) override;
  MemoryHandles record(GraphNodeId node, FunctionId function, MemoryHandles inputs,
                       const std::vector<bool>& copied) override;
  MemoryHandles replay(GraphNodeId node, MemoryHandles inputs) override;
  void resume(GraphNodeId node, const std::vector<uint64_t>& dead) override;
  void overwrite(const std::vector<uint64_t>& addresses) override;

  size_t pool_in_use() const { return pool_used_.size(); }

 private:
  struct Recording {
    FunctionId function = 0;
    std::vector<uint64_t> values;  ///< addresses: of the inputs, then of what the steps make
    std::vector<bool> copied;
    std::set<uint64_t> pool_after;
  };
  uint64_t take(std::set<uint64_t>& used, uint64_t first);
  MemoryHandle handle(uint64_t address, bool in_pool);
  void compute(const SmallFunction& function, const std::vector<uint64_t>& values);
  /// Addresses of all values: those of the inputs, then new ones.
  std::vector<uint64_t> lay_out(const SmallFunction& function, std::vector<uint64_t> values,
                                std::set<uint64_t>& used, uint64_t first);
  MemoryHandles finish(const SmallFunction& function, const std::vector<uint64_t>& values,
                       MemoryHandles inputs, bool in_pool);

  static constexpr uint64_t kOutside = 1, kPool = 1'000'000;
  std::vector<SmallFunction> functions_;
  std::unique_ptr<Arithmetic> arithmetic_;
  std::set<uint64_t> used_, pool_used_;
  std::map<GraphNodeId, Recording> recordings_;
  std::map<uint64_t, std::weak_ptr<const GraphMemory>> pool_handles_;
  bool pool_is_accounted_ = true;  ///< false: a replay has been, which the pool has not seen
};

}  // namespace metaprof
