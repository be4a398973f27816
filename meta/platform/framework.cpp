#include "meta/platform/framework.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"

namespace metaprof {
namespace {

// The number at the beginning, and the dot behind it if there is one. False if there is none.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take_dot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

bool ends_a_version(std::string_view rest) {
  return rest.empty() || rest.starts_with('+') || rest.starts_with('a') || rest.starts_with('b') ||
         rest.starts_with("rc") || rest.starts_with(".dev") || rest.starts_with(".post");
}

}  // namespace

std::optional<FrameworkVersion> read_framework_version(std::string_view text) {
  FrameworkVersion version{.major = 0, .minor = 0, .patch = 0};
  std::string_view rest = text;
  bool is_version = take_number(rest, version.major) && take_dot(rest) && take_number(rest, version.minor);
  if (is_version && !ends_a_version(rest)) is_version = take_dot(rest) && take_number(rest, version.patch);
  return is_version && ends_a_version(rest) ? std::optional(version) : std::nullopt;
}

FrameworkVersion parse_framework_version(std::string_view text) {
  const auto version = read_framework_version(text);
  if (!version)
    fail("'{}' is no version of PyTorch; expected one such as {}", text, to_string(kNewestFramework));
  if (*version < kOldestFramework)
    fail("PyTorch {} is not known; the oldest version that is known is {}", text,
         to_string(kOldestFramework));
  return *version;
}

std::string to_string(FrameworkVersion version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

Framework framework_of(FrameworkVersion version) {
  const auto since = [&](int minor) {
    return version >= FrameworkVersion{.major = 2, .minor = minor, .patch = 0};
  };
  Framework framework;
  framework.version = version;
  framework.loads_sixteen_bytes = since(7);
  framework.flash_random_state_on_device = since(7);
  framework.slices_whole_dimensions = !since(9);
  framework.reads_alloc_conf = since(10);
  framework.asks_whether_to_share_workspaces = since(8);
  if (!since(9)) framework.cublas_lt_workspace = CublasLtWorkspace::per_call_around_cublas;
  framework.sums_layer_norm_in_parts = since(8);
  framework.first_gradient_decides_stream = since(8);
  framework.limits_cublas_lt_workspace = since(11);
  if (since(12)) {
    framework.cublas_lt_workspace = CublasLtWorkspace::shared_with_cublas;
    framework.cudnn_attention_takes_any_dropout = false;
    framework.free_block_order = FreeBlockOrder::block_record;
  }
  if (since(13)) {
    framework.has_kernel_for_outer_products = true;
    framework.sorts_rows_by_needed_bits = true;
    framework.casts_group_norm_statistics = true;
    framework.free_block_order = FreeBlockOrder::segment;
  }
  if (since(14)) {
    framework.zeroes_seed_of_efficient_attention = true;
    framework.efficient_attention_takes_groups = true;
  }
  if (since(15)) {
    framework.packs_partial_norms = true;
    framework.keeps_cublas_workspaces = false;
    framework.asks_whether_to_keep_workspaces = true;
    framework.makes_graph_seed_on_first_use = true;
    framework.captures_callables_on_warm_stream = true;
    framework.compiles_around_recurrent_networks = true;
    framework.traces_assigned_numbers = true;
    framework.compiled_dropout_gives_input = true;
    framework.compiled_backward_takes_gradients = true;
    framework.large_cublas_workspace_on_sm90_only = false;
    framework.cublas_lt_workspace = CublasLtWorkspace::per_call;
  }
  return framework;
}

}  // namespace metaprof
