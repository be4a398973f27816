#include "estimate/search/recapture.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/display.h"
#include "estimate/estimate.h"

namespace metaprof {
namespace {

// Sizes to try on one side of the answer: further off, the engine does not follow the module, which is to be said.
constexpr int kMostCaptures = 16;

class Recapturing {
 public:
  Recapturing(const Model& model, const RunOptions& run, const std::string& dimension, FitRow& row)
      : model_(model), run_(run), dimension_(dimension), row_(row) {}

  std::string run() {
    const int64_t answer = row_.largest.value_or(0);
    int64_t size = answer;
    if (size == 0 || fits(size))
      while (captures_ < kMostCaptures && fits(size + 1)) ++size;
    else
      while (captures_ < kMostCaptures && --size > 0 && !fits(size)) continue;
    if (captures_ >= kMostCaptures)
      fail(
          "{} {}: {} captures at other sizes disagree with the engine's answer, and none of them is the "
          "largest that fits; "
          "look with metaprof profile --{}",
          dimension_, answer, captures_, dimension_);
    if (size == answer && size == 0)
      return fmt::format("{} 1 was captured again: it does not fit", dimension_);
    if (size == answer)
      return fmt::format("{} {} and {} were captured again: the one fits, the other does not", dimension_,
                         size, size + 1);
    row_.largest = size > 0 ? std::optional(size) : std::nullopt;
    return fmt::format("{} {} is what captures say; of one capture the engine had made {}", dimension_, size,
                       answer);
  }

 private:
  bool fits(int64_t size) try {
    ++captures_;
    RunOptions run = run_;
    (dimension_ == "batch" ? run.batch : run.sequence) = static_cast<int>(size);
    const Model again = read_model(model_.name, run);
    const ProfileReport report = estimate(again, run, StepsToRun::until_alike).report;
    const bool does = verdict_of(report).fits;
    if (does) {
      row_.allocated = {report.memory.phases.peak.allocated_bytes.peak};
      row_.reserved = {report.memory.phases.peak.reserved_bytes.peak};
    }
    return does;
  } catch (const Error&) {  // a size with which the module cannot be called
    return false;
  }

  const Model& model_;
  const RunOptions& run_;
  const std::string& dimension_;
  FitRow& row_;
  int captures_ = 0;
};

}  // namespace

bool can_recapture(const Model& model) {
  return model.program.captured && !model.program.captured->module.empty();
}

std::string recapture(const Model& model, const RunOptions& run, const std::string& dimension, FitRow& row) {
  return Recapturing(model, run, dimension, row).run();
}

}  // namespace metaprof
