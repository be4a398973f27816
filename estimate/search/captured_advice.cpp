#include "estimate/search/captured_advice.h"

#include <fmt/format.h>

#include "core/error.h"
#include "estimate/prepare/captured_run.h"
#include "estimate/prepare/model.h"
#include "estimate/search/advise.h"
#include "estimate/search/fit.h"

namespace metaprof {
namespace {

// Of the switches that have no run of the program: those that change what the numbers are.
std::string change_of(const std::pair<std::string, std::string>& setting) {
  if (setting.first == "optimizer") return fmt::format("the optimizer {}", setting.second);
  if (setting.first == "precision" && setting.second == "bf16")
    return "model.to(torch.bfloat16), with its gradients and the optimizer's state";
  return {};
}

void add_switches(const Model& model, const RunOptions& options, std::vector<CapturedAdvice>& found) {
  for (const AdviceRow& row : advise(model, options).rows)
    if (const std::string change = row.changes.size() == 1 ? change_of(row.changes[0]) : ""; !change.empty())
      found.push_back({row.changes[0].first, change, row.allocated, row.reserved, row.fits});
}

void add_batch(const Model& model, const RunOptions& options, int64_t batch,
               std::vector<CapturedAdvice>& found) {
  FitOptions wanted;
  wanted.grid.common = options;
  for (const FitRow& row : fit(model, wanted).rows)
    if (row.largest && *row.largest < batch)
      found.push_back({"batch", fmt::format("a batch of {} in place of {}", *row.largest, batch),
                       row.allocated, row.reserved, true});
}

}  // namespace

std::vector<CapturedAdvice> captured_advice(const Program& program, const std::string& context,
                                            int64_t batch) {
  std::vector<CapturedAdvice> found;
  Model model;
  model.program = program;
  model.name = program.name;
  RunOptions options;
  options.context = context;
  const RunOptions run = as_captured(options, program);
  try {
    add_switches(model, run, found);
  } catch (const Error&) {  // steps that the engine cannot run
  }
  try {
    if (batch > 0) add_batch(model, run, batch, found);
  } catch (const Error&) {  // steps that take no other size
  }
  return found;
}

}  // namespace metaprof
