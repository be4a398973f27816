#include "program/nn/module.h"

#include <fmt/format.h>

namespace metaprof::nn {

AnyModule::AnyModule(const Place& place, std::string type)
    : recording_(place.recording), number_(recording_->add_module(place.path, std::move(type))) {}

Place AnyModule::child(std::string_view name) const {
  return {recording_, path().empty() ? std::string(name) : fmt::format("{}.{}", path(), name)};
}

Place AnyModule::child(std::string_view name, int64_t index) const {
  return child(fmt::format("{}.{}", name, index));
}

Tensor AnyModule::parameter(std::string_view name, Sizes sizes) const {
  return recording_->parameter(number_, name, std::move(sizes), DType::f32, true);
}

Tensor AnyModule::buffer(std::string_view name, Sizes sizes, DType dtype, bool persistent) const {
  return recording_->buffer(number_, name, std::move(sizes), dtype, persistent);
}

Tensor AnyModule::tied(std::string_view name, const Tensor& parameter) const {
  recording_->tie(number_, name, parameter);
  return parameter;
}

Tensor AnyModule::make(std::string_view op, std::span<Argument> given) const {
  return recording_->call(op, given).at(0);
}

Tensor AnyModule::arange(int64_t end) const {
  Argument given[] = {end, std::nullopt, std::nullopt, kModelDevice};
  return make("arange", given);
}

}  // namespace metaprof::nn
