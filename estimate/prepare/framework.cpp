#include "estimate/prepare/framework.h"

#include <fmt/format.h>

#include "core/error.h"

namespace metaprof {
namespace {

std::string short_text(FrameworkVersion version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

// Patch releases are taken to be like the one that was compared.
bool is_newer_than_known(FrameworkVersion version) {
  return std::pair(version.major, version.minor) > std::pair(kNewestFramework.major, kNewestFramework.minor);
}

std::string warning_of_newer(FrameworkVersion version) {
  if (!is_newer_than_known(version)) return {};
  return fmt::format(
      "PyTorch {} is newer than {}, the newest version that was compared; the rules of {} are taken",
      to_string(version), short_text(kNewestFramework), short_text(kNewestFramework));
}

// `reason`: "which wrote the model".
FrameworkChoice choice_of_program(const std::string& framework, std::string_view reason) {
  const auto version = read_framework_version(framework);
  if (!version)
    return {
        kNewestFramework, "the newest that is known",
        fmt::format("the model names '{}' as the PyTorch {}, which is no version; the rules of {} are taken",
                    framework, reason, short_text(kNewestFramework))};
  if (*version < kOldestFramework)
    return {
        kOldestFramework, "the oldest that is known",
        fmt::format("PyTorch {}, {}, is older than {}, the oldest version that was compared; the rules of {} "
                    "are taken",
                    to_string(*version), reason, short_text(kOldestFramework), short_text(kOldestFramework))};
  return {*version, reason, warning_of_newer(*version)};
}

}  // namespace

FrameworkVersion framework_given(const RunOptions& options) {
  try {
    return parse_framework_version(options.framework);
  } catch (const Error& error) {
    fail("--framework: {}", error.what());
  }
}

FrameworkChoice framework_for(const RunOptions& options, const Program& program) {
  if (!options.framework.empty()) {
    const FrameworkVersion version = framework_given(options);
    return {version, "as asked", warning_of_newer(version)};
  }
  if (program.captured) return choice_of_program(program.captured->torch, "which ran the program");
  if (!program.framework.empty()) return choice_of_program(program.framework, "which wrote the model");
  return {kNewestFramework, "the newest that is known", {}};
}

std::string allocator_settings(const RunOptions& options, const Framework& framework) {
  if (!options.alloc_conf.empty()) return options.alloc_conf;
  const auto& environment = options.step.environment;
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (name == std::string_view("PYTORCH_ALLOC_CONF") && !framework.reads_alloc_conf) continue;
    if (const auto found = environment.find(name); found != environment.end() && !found->second.empty())
      return found->second;
  }
  return {};
}

}  // namespace metaprof
