#include "meta/allocator/alloc_conf.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"

namespace metaprof {

namespace {

constexpr std::string_view kOptions =
    "backend, expandable_segments, garbage_collection_threshold, graph_capture_record_stream_reuse, "
    "large_segment_size_mb, max_non_split_rounding_mb, max_split_size_mb, per_process_memory_fraction, "
    "pinned_num_register_threads, pinned_reserve_segment_size_mb, pinned_use_background_threads, "
    "pinned_use_cuda_host_register, release_lock_on_cudamalloc, roundup_power2_divisions";

constexpr std::uint64_t kMaxRegisterThreads = 128;  // of pinned_num_register_threads in PyTorch 2.11

struct Setting {
  std::string option;
  std::string value;  // one word, or the text between the brackets of a list
  bool list = false;
};

std::string without_blanks(std::string_view text) {
  std::string packed;
  for (const char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) packed += c;
  }
  return packed;
}

// Cuts `a:1,b:[2:3,>:4]` at the commas outside brackets.
std::vector<Setting> split_settings(std::string_view text) {
  std::vector<Setting> settings;
  while (!text.empty()) {
    const std::size_t colon = text.find_first_of(":,[]");
    Setting setting{.option = std::string(text.substr(0, colon)), .value = {}};
    if (setting.option.empty()) fail("alloc-conf: expected an option before '{}'", text);
    if (colon == std::string_view::npos || text[colon] != ':') {
      fail("alloc-conf: option '{}' has no value; write {}:VALUE", setting.option, setting.option);
    }
    text.remove_prefix(colon + 1);
    std::size_t end;
    if (!text.empty() && text[0] == '[') {
      end = text.find(']');
      if (end == std::string_view::npos) fail("alloc-conf: the list of {} has no ']'", setting.option);
      setting.list = true;
      setting.value = text.substr(1, end - 1);
      ++end;
    } else {
      end = std::min(text.find_first_of(":,[]"), text.size());
      setting.value = text.substr(0, end);
      if (setting.value.empty()) {
        fail("alloc-conf: option '{}' has no value; write {}:VALUE", setting.option, setting.option);
      }
    }
    text.remove_prefix(end);
    if (!text.empty() && text[0] != ',') {
      fail("alloc-conf: expected ',' after the value of {}, got '{}'", setting.option, text);
    }
    if (!text.empty()) text.remove_prefix(1);
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::uint64_t to_integer(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc{} || end != text.data() + text.size()) {
    fail("alloc-conf: {} must be a whole number of at least 0; got '{}'", option, text);
  }
  return value;
}

double to_fraction(const Setting& s) {
  double value = 0;
  const auto [end, status] = std::from_chars(s.value.data(), s.value.data() + s.value.size(), value);
  if (status != std::errc{} || end != s.value.data() + s.value.size() || !std::isfinite(value)) {
    fail("alloc-conf: {} must be a number; got '{}'", s.option, s.value);
  }
  return value;
}

bool to_bool(const Setting& s) {
  if (s.value != "True" && s.value != "False") {
    fail("alloc-conf: {} must be True or False; got '{}'", s.option, s.value);
  }
  return s.value == "True";
}

std::uint64_t to_bytes(const Setting& s) {
  return std::min(to_integer(s.option, s.value), kUnlimited / kMiB) * kMiB;
}

std::uint64_t to_bytes_at_least(const Setting& s, std::uint64_t least) {
  const std::uint64_t bytes = to_bytes(s);
  if (bytes < least) {
    fail("alloc-conf: {} must be at least {} (large_segment_size_mb); got {}", s.option, least / kMiB,
         s.value);
  }
  return bytes;
}

std::uint64_t to_divisions(std::string_view option, std::string_view text) {
  const std::uint64_t divisions = to_integer(option, text);
  if (divisions != 0 && !std::has_single_bit(divisions)) {
    fail("alloc-conf: the divisions of {} must be 0 or a power of 2; got {}", option, text);
  }
  return divisions;
}

// `[256:1,512:2,>:4]`: KEY is a size in MiB and stands for the interval that begins there; what is below the
// first KEY gets its divisions, `>` is everything above the last KEY before it (above 1 if there is none).
// Intervals in between that are not named keep 0. (PyTorch 2.11 answers the same, list by list)
void set_division_list(const Setting& s, AllocConf& conf) {
  auto& divisions = conf.roundup_power2_divisions;
  const std::size_t last_interval = divisions.size() - 1;
  bool first = true;
  std::size_t above = 1;
  std::string_view rest = s.value;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t colon = pair.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      fail("alloc-conf: the list of {} needs SIZE_MB:DIVISIONS or >:DIVISIONS; got '{}'", s.option, pair);
    }
    const std::string_view key = pair.substr(0, colon);
    const std::uint64_t value = to_divisions(s.option, pair.substr(colon + 1));
    if (key == ">") {
      std::fill(divisions.begin() + static_cast<std::ptrdiff_t>(above), divisions.end(), value);
      continue;
    }
    const std::uint64_t size = to_integer(s.option, key);
    if (!std::has_single_bit(size)) {
      fail("alloc-conf: the sizes of {} must be powers of 2; got {}", s.option, key);
    }
    const std::size_t interval = std::min<std::size_t>(std::bit_width(size) - 1, last_interval);
    if (first) std::fill_n(divisions.begin(), interval, value);
    first = false;
    divisions[interval] = value;
    above = interval + 1;
  }
}

void set_divisions(const Setting& s, AllocConf& conf) {
  if (s.list) return set_division_list(s, conf);
  const std::uint64_t divisions = to_divisions(s.option, s.value);
  if (divisions == 0) fail("alloc-conf: {} must be a power of 2; got 0", s.option);
  conf.roundup_power2_divisions.fill(divisions);
}

void set_large_segment_size(const Setting& s, AllocConf& conf) {
  conf.large_segment_size = to_bytes(s);
  if (conf.large_segment_size <= 10 * kMiB) {
    fail("alloc-conf: large_segment_size_mb must be more than 10; got {}", s.value);
  }
  conf.max_non_split_rounding = conf.large_segment_size;
}

void check_pinned_threads(const Setting& s) {
  const std::uint64_t threads = to_integer(s.option, s.value);
  if (!std::has_single_bit(threads) || threads > kMaxRegisterThreads) {
    fail("alloc-conf: {} must be a power of 2 up to {}; got {}", s.option, kMaxRegisterThreads, s.value);
  }
}

void set(const Setting& s, AllocConf& conf) {
  const std::string& option = s.option;
  if (s.list && option != "roundup_power2_divisions") fail("alloc-conf: {} does not take a list", option);
  if (option == "max_split_size_mb") {
    conf.max_split_size = to_bytes_at_least(s, conf.large_segment_size);
  } else if (option == "max_non_split_rounding_mb") {
    conf.max_non_split_rounding = to_bytes_at_least(s, conf.large_segment_size);
  } else if (option == "garbage_collection_threshold") {
    conf.garbage_collection_threshold = to_fraction(s);
    if (!(conf.garbage_collection_threshold > 0 && conf.garbage_collection_threshold < 1)) {
      fail("alloc-conf: garbage_collection_threshold must be above 0 and below 1; got {}", s.value);
    }
  } else if (option == "per_process_memory_fraction") {
    conf.per_process_memory_fraction = to_fraction(s);
    if (!(conf.per_process_memory_fraction >= 0 && conf.per_process_memory_fraction <= 1)) {
      fail("alloc-conf: per_process_memory_fraction must be between 0 and 1; got {}", s.value);
    }
  } else if (option == "expandable_segments") {
    conf.expandable_segments = to_bool(s);
  } else if (option == "roundup_power2_divisions") {
    set_divisions(s, conf);
  } else if (option == "large_segment_size_mb") {
    // Read before all others.
  } else if (option == "backend") {
    if (s.value != "native") fail("alloc-conf: backend:{} is not modelled; only backend:native is", s.value);
  } else if (option == "graph_capture_record_stream_reuse" || option == "release_lock_on_cudamalloc" ||
             option == "release_lock_on_hipmalloc" || option == "pinned_use_cuda_host_register" ||
             option == "pinned_use_hip_host_register" || option == "pinned_use_background_threads") {
    to_bool(s);
  } else if (option == "pinned_num_register_threads") {
    check_pinned_threads(s);
  } else if (option == "pinned_reserve_segment_size_mb") {
    if (to_integer(option, s.value) == 0) fail("alloc-conf: {} must be more than 0; got 0", option);
  } else {
    fail("alloc-conf: unknown option '{}'; known are {}", option, kOptions);
  }
}

}  // namespace

AllocConf parse_alloc_conf(std::string_view text) {
  const std::vector<Setting> settings = split_settings(without_blanks(text));
  AllocConf conf;
  for (const Setting& s : settings) {
    if (s.option == "large_segment_size_mb" && !s.list) set_large_segment_size(s, conf);
  }
  for (const Setting& s : settings) set(s, conf);
  return conf;
}

bool AllocConf::cuts_blocks_by_default_rules() const {
  return max_split_size == kUnlimited &&
         std::ranges::all_of(roundup_power2_divisions, [](std::uint64_t steps) { return steps <= 1; });
}

}  // namespace metaprof
