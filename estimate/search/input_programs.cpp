#include "estimate/search/input_programs.h"

#include <algorithm>

#include "estimate/prepare/run_groups.h"

namespace metaprof {
namespace {

constexpr size_t kKept = 4;

}  // namespace

std::shared_ptr<const Program> InputPrograms::of(const RunOptions& run) {
  std::string key = inputs_asked_by(run);
  std::promise<std::shared_ptr<const Program>> making;
  {
    std::unique_lock lock(mutex_);
    const auto found = std::ranges::find(last_, key, &std::pair<std::string, Made>::first);
    if (found != last_.end()) {
      const Made made = found->second;
      lock.unlock();
      return made.get();
    }
    if (last_.size() == kKept) last_.pop_front();
    last_.emplace_back(std::move(key), making.get_future().share());
  }
  try {
    std::optional<Program> changed = changed_inputs(model_, run);
    // The model's own program is nobody's to delete.
    std::shared_ptr<const Program> program(std::shared_ptr<void>(), &model_.program);
    if (changed) program = std::make_shared<const Program>(std::move(*changed));
    making.set_value(program);
    return program;
  } catch (...) {
    making.set_exception(std::current_exception());
    throw;
  }
}

}  // namespace metaprof
