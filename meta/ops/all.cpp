#include "meta/ops/all.h"

#include "meta/autograd/state.h"
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

}  // namespace

const Registry& standard_registry() {
  static const Registry registry(all_records());
  return registry;
}

std::unique_ptr<Session> make_session(const Platform& platform) {
  auto session = std::make_unique<Session>(platform, standard_registry());
  install_autograd(*session);
  return session;
}

}  // namespace metaprof
