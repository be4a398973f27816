#include "reports/sections/cache_row.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/formats/display.h"

namespace metaprof {
namespace {

constexpr size_t kMostLayers = 4;  // that a line names

}  // namespace

std::string cache_text(const std::vector<CacheRow>& rows) {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> layers;  // by tokens and bytes
  int64_t sum = 0;
  for (const CacheRow& row : rows) {
    layers[{row.tokens, row.bytes.count}].push_back(row.layer);
    sum += row.bytes.count;
  }
  std::string text = fmt::format("{} in {} layers\n", human_bytes(sum), rows.size());
  for (const auto& [kept, of] : layers) {
    const std::vector<int64_t> named(of.begin(),
                                     of.begin() + static_cast<int64_t>(std::min(of.size(), kMostLayers)));
    text +=
        fmt::format("  {} × {} tokens, {} (layers {}{})\n", of.size(), kept.first, human_bytes(kept.second),
                    fmt::join(named, ", "), of.size() > named.size() ? ", …" : "");
  }
  return text;
}

}  // namespace metaprof
