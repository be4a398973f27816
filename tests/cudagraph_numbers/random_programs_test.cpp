// A tree of graphs whose functions are computed by libtorch's CPU kernels (tests/libtorch).

#include "tests/graph/random_programs.h"

#include <gtest/gtest.h>

#include "meta/ops/all.h"
#include "meta/platform/platform.h"
#include "tests/libtorch/cpu_numbers.h"

namespace metaprof {
namespace {

// A session whose tensors have numbers.
struct Host {
  Host() : session(make_session(platform_named("h200"))) {
    session->device = kHost;
    session->modes.grad = false;
    numbers = std::make_unique<CpuNumbers>(*session);
  }
  std::unique_ptr<Session> session;
  std::unique_ptr<CpuNumbers> numbers;
};

Host& host() {
  static Host host;
  return host;
}

class KernelArithmetic final : public Arithmetic {
 public:
  void set(uint64_t address, Numbers numbers) override {
    at::Tensor data = host().numbers->of(at(address));
    for (size_t n = 0; n < numbers.size(); ++n) data.select(0, static_cast<int64_t>(n)).fill_(numbers[n]);
  }
  Numbers get(uint64_t address) override {
    const at::Tensor data = host().numbers->of(at(address));
    Numbers numbers;
    for (size_t n = 0; n < numbers.size(); ++n)
      numbers[n] = data.select(0, static_cast<int64_t>(n)).item().toDouble();
    return numbers;
  }
  void copy(uint64_t to, uint64_t from) override { call<"copy_">(*host().session, at(to), at(from)); }
  void sum(uint64_t result, uint64_t left, uint64_t right) override {
    const Tensor made = call<"add.Tensor">(*host().session, at(left), at(right), 2);
    call<"copy_">(*host().session, at(result), made);
  }
  // In place, through a view, through a view of a view, through a list.
  void add_to(uint64_t left, uint64_t right, size_t way) override {
    Session& session = *host().session;
    const Tensor target = at(left);
    switch (way % 4) {
      case 0: call<"add_.Tensor">(session, target, at(right)); return;
      case 1: call<"add_.Tensor">(session, call<"view">(session, target, Sizes{2}), at(right)); return;
      case 2: {
        const Tensor row = call<"unsqueeze">(session, target, 0);
        call<"add_.Tensor">(session, call<"squeeze.dim">(session, row, 0), at(right));
        return;
      }
      default: call_all<"_foreach_add_.List">(session, Value::Tensors{target}, Value::Tensors{at(right)});
    }
  }

 private:
  const Tensor& at(uint64_t address) {
    Tensor& tensor = tensors_[address];
    if (!tensor.defined()) tensor = host().session->empty(Sizes{2}, DType::f64, kHost);
    return tensor;
  }
  std::map<uint64_t, Tensor> tensors_;
};

TEST(CudagraphNumbers, FiveThousandRandomProgramsGiveTheNumbersOfAnEagerRunOnTheCpu) {
  run_random_programs(5000, [] { return std::make_unique<KernelArithmetic>(); });
}

}  // namespace
}  // namespace metaprof
