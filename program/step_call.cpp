#include "program/step_call.h"

#include "core/error.h"

namespace metaprof {
namespace {

constexpr std::string_view kNamespace = "step::";
constexpr struct {
  std::string_view name;
  StepCall call;
} kCalls[] = {{"phase", StepCall::phase},
              {"pause", StepCall::pause},
              {"backward", StepCall::backward},
              {"backward_leave", StepCall::backward_leave},
              {"hook", StepCall::hook},
              {"hook_enter", StepCall::hook_enter},
              {"edge", StepCall::edge},
              {"hook_leave", StepCall::hook_leave},
              {"saved_on_host_enter", StepCall::saved_on_host_enter},
              {"saved_on_host_leave", StepCall::saved_on_host_leave},
              {"resize_storage", StepCall::resize_storage},
              {"keep", StepCall::keep},
              {"record_stream", StepCall::record_stream},
              {"stream", StepCall::stream},
              {"gradient", StepCall::gradient},
              {"set_gradient", StepCall::set_gradient},
              {"set_data", StepCall::set_data},
              {"alias", StepCall::alias},
              {"integers", StepCall::integers},
              {"tensor", StepCall::tensor},
              {"name", StepCall::name},
              {"grad_mode", StepCall::grad_mode},
              {"inference_mode", StepCall::inference_mode},
              {"attention", StepCall::attention},
              {"nodes", StepCall::nodes},
              {"engine_thread", StepCall::engine_thread},
              {"autocast_enter", StepCall::autocast_enter},
              {"autocast_leave", StepCall::autocast_leave},
              {"requires_grad", StepCall::requires_grad},
              {"function_enter", StepCall::function_enter},
              {"function_leave", StepCall::function_leave},
              {"keep_versions_enter", StepCall::keep_versions_enter},
              {"keep_versions_leave", StepCall::keep_versions_leave},
              {"empty_cache", StepCall::empty_cache},
              {"clear_saved", StepCall::clear_saved},
              {"clear_gradients", StepCall::clear_gradients},
              {"optimizer_enter", StepCall::optimizer_enter},
              {"optimizer_leave", StepCall::optimizer_leave},
              {"placed", StepCall::placed},
              {"optimizer", StepCall::optimizer}};

}  // namespace

std::optional<StepCall> step_call(std::string_view op) {
  if (!op.starts_with(kNamespace)) return std::nullopt;
  for (const auto& row : kCalls)
    if (row.name == op.substr(kNamespace.size())) return row.call;
  fail("{}: a program has no such call: docs/reference/program.md lists those of step::", op);
}

}  // namespace metaprof
