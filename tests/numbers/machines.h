#pragma once
// Who runs a random program: our engine without data, our engine with numbers, and libtorch with an autograd
// of its own.

#include <map>
#include <memory>
#include <optional>

#include "meta/session/session.h"
#include "tests/libtorch/cpu_numbers.h"
#include "tests/numbers/random_program.h"

namespace metaprof {

class OurMachine {
 public:
  explicit OurMachine(bool with_numbers);
  ~OurMachine();

  std::unique_ptr<Session> session;
  std::unique_ptr<CpuNumbers> numbers;
  Registers registers;
  std::vector<Tensor> leaves;  ///< those that require grad; they outlive the program's drops

  /// What went wrong, or empty.
  std::string run(const Instruction& instruction);
  /// Requested bytes that are not freed.
  int64_t live_bytes();
  bool is_alive(uint32_t storage) const { return live_.count(storage) > 0; }
  /// Numbers of a leaf, in the order of its elements.
  std::vector<double> leaf_values(size_t leaf);
  /// Added to an element of a leaf when it is made.
  struct Nudge {
    size_t leaf;
    int64_t element;
    double by;
  };
  std::optional<Nudge> nudge;
  /// Sum of a register's elements.
  double sum(int tensor);

 private:
  void make_leaf(const Instruction& instruction);
  void call(const Instruction& instruction);
  void follow_trace();

  std::map<uint32_t, int64_t> live_;
  size_t next_event_ = 0;
  size_t leaves_made_ = 0;
};

class TheirMachine {
 public:
  TheirMachine();
  ~TheirMachine();

  std::vector<at::Tensor> registers;
  std::vector<at::Tensor> leaves;

  std::string run(const Instruction& instruction, const std::vector<double>& leaf_values);
  /// Bytes that the program's tensors and graphs hold.
  int64_t live_bytes() const;

 private:
  void make_leaf(const Instruction& instruction, const std::vector<double>& values);
  void call(const Instruction& instruction);
};

/// Elements in row-major order.
std::vector<double> elements(const at::Tensor& tensor);

}  // namespace metaprof
