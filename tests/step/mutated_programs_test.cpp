// Captured programs whose text was damaged: a message or a result, whatever stands in them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/error.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/platform/platform.h"
#include "profiler/allocator/phases.h"
#include "program/text/program_file.h"
#include "program/text/text.h"
#include "step/step.h"

namespace metaprof {
namespace {

// A step, and what else a program does without calling an operator.
const std::string kEveryCall = R"(metaprof program 1
captured torch 2.11.0
step::phase("setup", 0, -1)
%w: f32[1000] grad = step::tensor()
step::name("parameter", "w", %w)
%x2: f32[1000] = step::tensor()
step::phase("forward", 0, -1)
%x: f32[1000] = step::tensor()
%y: f32[1000] = aten::mul.Tensor(%w, %x) drop %x
%loss: f32[] = aten::sum(%y) drop %y
step::phase("backward", 0, -1)
%one: f32[] = aten::ones_like(%loss)
step::backward([%loss], [%one], False, False, tensors[], True) drop %one, %loss
step::phase("optimizer", 0, -1)
step::grad_mode(False)
%g: f32[1000] = step::gradient(%w)
_ = aten::add_.Tensor(%w, %g, alpha=-0.1)
step::phase("zero_grad", 0, -1)
step::set_gradient(%w, None) drop %g
step::grad_mode(True)
checkpoint {
  %h: f32[1000] = aten::sin(%w)
  step::keep([%x2])
}
step::stream(1)
step::record_stream(%x2, 2)
step::keep_versions_enter([%x2, %w])
_ = aten::sin.out(%w, out=%x2)
step::keep_versions_leave()
step::stream(0)
step::empty_cache()
%d: f32[1000] = step::alias(%h)
step::set_data(%w, %d)
step::autocast_enter(True, bf16, True)
%m: f32[1000] = aten::exp(%h)
step::autocast_leave()
[%n: f32[1000]] = step::backward([%m], [%x2], True, False, [%h], False)
step::set_gradient(%w, %n)
)";

// How many texts; METAPROF_MUTATIONS asks for another number of each kind.
int mutations(int usual) {
  const char* given = std::getenv("METAPROF_MUTATIONS");
  return given ? std::atoi(given) : usual;
}

class Mutator {
 public:
  explicit Mutator(std::string whole) : whole_(std::move(whole)) {}

  // One to three times characters changed, left out or put in twice, or a line put elsewhere.
  std::string text() {
    std::string text = whole_;
    for (size_t changes = 1 + below(3); changes > 0; --changes) change(text);
    return text;
  }
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }

 private:
  void change(std::string& text) {
    const size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(20));
    switch (below(4)) {
      case 0: text[at] = whole_[below(whole_.size())]; break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(below(text.size()), text.substr(at, length)); break;
      default: move_line(text, at);
    }
  }
  void move_line(std::string& text, size_t at) {
    const size_t line = text.find('\n', at), next = line == text.npos ? line : text.find('\n', line + 1);
    if (next == text.npos) return;
    const std::string moved = text.substr(line, next - line);
    text.erase(line, next - line);
    const size_t to = text.find('\n', below(text.size()));
    if (to != text.npos) text.insert(to, moved);
  }

  const std::string whole_;
  std::mt19937 random_{1};
};

// As it was captured, and as it would be with other options.
std::vector<StepOptions> ways_to_run() {
  std::vector<StepOptions> ways(7);
  ways[1].precision = Precision::bf16;
  ways[2].precision = Precision::amp_bf16;
  ways[3].optimizer = "sgd-momentum";
  ways[4].steps = 1;
  ways[5].accumulate = 2;
  ways[6].checkpoint = "*";
  return ways;
}

// Whether there is a result. Messages have one line.
bool runs(const std::string& text, const StepOptions& options) {
  try {
    const Program program = parse_program(text, "step.mp");
    const std::string printed = to_text(program);
    EXPECT_EQ(to_text(parse_program(printed, "step.mp")), printed) << text;
    const Trace trace = run_steps(program, platform_named("h200"), options);
    CachingAllocator allocator({.device = {.capacity = uint64_t{1} << 37}});
    replay(trace, kFirstGpu, allocator);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return false;
  }
}

TEST(MutatedPrograms, GetAMessageOrAResult) {
  ASSERT_TRUE(runs(kEveryCall, {}));
  Mutator mutator(kEveryCall);
  const std::vector<StepOptions> ways = ways_to_run();
  const int count = mutations(5'000);
  int results = 0;
  for (int i = 0; i < count; ++i) results += runs(mutator.text(), ways[size_t(i) % ways.size()]) ? 1 : 0;
  EXPECT_GT(results, count / 20);
}

TEST(MutatedPrograms, OfARealRunGetAMessageOrAResult) {
  const std::string whole = to_text(read_program_file("tests/data/captured/checkpoints.mp"));
  ASSERT_TRUE(runs(whole, {}));
  Mutator mutator(whole);
  const std::vector<StepOptions> ways = ways_to_run();
  const int count = mutations(300);
  for (int i = 0; i < count; ++i) runs(mutator.text(), ways[size_t(i) % ways.size()]);
}

}  // namespace
}  // namespace metaprof
