#include "meta/ops/all.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "meta/autograd/graph/state.h"
#include "meta/ops/attention/family.h"
#include "meta/ops/convolution/family.h"
#include "meta/ops/creation/family.h"
#include "meta/ops/fourier/family.h"
#include "meta/ops/images/family.h"
#include "meta/ops/indexing/family.h"
#include "meta/ops/linear_algebra/family.h"
#include "meta/ops/losses/family.h"
#include "meta/ops/normalization/family.h"
#include "meta/ops/optimizers/family.h"
#include "meta/ops/ordering/family.h"
#include "meta/ops/pointwise/family.h"
#include "meta/ops/pooling/family.h"
#include "meta/ops/products/family.h"
#include "meta/ops/random/family.h"
#include "meta/ops/recurrent/family.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/scans/family.h"
#include "meta/ops/sparse/family.h"
#include "meta/ops/views/family.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

constexpr std::span<Tables (*const)()> kFamilies[] = {
    kAttentionFamily, kConvolutionFamily,   kCreationFamily, kFourierFamily,       kImagesFamily,
    kIndexingFamily,  kLinearAlgebraFamily, kLossesFamily,   kNormalizationFamily, kOptimizersFamily,
    kOrderingFamily,  kPointwiseFamily,     kPoolingFamily,  kProductsFamily,      kRandomFamily,
    kRecurrentFamily, kReductionsFamily,    kScansFamily,    kSparseFamily,        kViewsFamily};

std::vector<Records> all_records() {
  std::vector<Records> all;
  for (auto family : kFamilies)
    for (auto* tables : family)
      for (Records records : tables()) all.push_back(records);
  return all;
}

// Those at which some record begins or ceases to hold, in order.
std::vector<FrameworkVersion> versions_that_change(std::span<const Records> tables) {
  const FrameworkRange always;
  std::set<FrameworkVersion> changes;
  for (Records records : tables) {
    for (const Op& record : records) {
      const FrameworkRange& versions = record.facts.versions;
      if (versions.since != always.since) changes.insert(versions.since);
      if (versions.before != always.before) changes.insert(versions.before);
    }
  }
  return {changes.begin(), changes.end()};
}

}  // namespace

const Registry& registry_for(FrameworkVersion version) {
  static const std::vector<Records> records = all_records();
  static const std::vector<FrameworkVersion> changes = versions_that_change(records);
  static std::map<ptrdiff_t, Registry> registries;
  static std::mutex guard;
  const std::lock_guard lock(guard);
  const auto key = std::ranges::upper_bound(changes, version) - changes.begin();
  return registries.try_emplace(key, records, version).first->second;
}

const Registry& standard_registry() {
  static const Registry& registry = registry_for(FrameworkVersion{});
  return registry;
}

std::unique_ptr<Session> make_session(const Platform& platform) {
  auto session = std::make_unique<Session>(platform, registry_for(platform.framework.version));
  install_autograd(*session);
  return session;
}

}  // namespace metaprof
