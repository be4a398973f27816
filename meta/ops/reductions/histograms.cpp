// Histograms with weights and in several dimensions, which the framework has on the host only (native/Histogram.cpp; recorded:
// `opinfo/histogram`, `opinfo/histogramdd`).

#include <fmt/format.h>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/reductions/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/no_gradient.h"

namespace metaprof {
namespace {

void check_host(const Call& c) {
  if (c.on_cuda()) c.error("the framework has histograms with edges on the host only");
}

void count_meta(Call& c) {
  check_host(c);
  const int64_t bins = c.integer("bins");
  if (bins < 1) c.error(fmt::format("expects a bin or more, got {}", bins));
  c.output(Sizes{bins}, c.tensor("self").dtype());
  c.output(Sizes{bins + 1}, c.tensor("self").dtype());
}

void edges_meta(Call& c) {
  check_host(c);
  const Tensor& bins = c.tensor("bins");
  if (bins.dim() != 1 || bins.numel() < 2)
    c.error(fmt::format("expects two edges or more, got {}", describe(bins)));
  c.output(Sizes{bins.numel() - 1}, bins.dtype());
  c.output(bins.sizes(), bins.dtype());
}

// Rows of coordinates; the last dimension says how many there are.
void counts_meta(Call& c) {
  check_host(c);
  const Tensor& self = c.tensor("self");
  const Sizes& bins = c.ints("bins");
  if (self.dim() < 2 || self.size(-1) != int64_t(bins.size()))
    c.error(fmt::format("expects bins for each coordinate of {}, got {}", describe(self), bins.size()));
  std::vector<Tensor> edges;
  for (const int64_t count : bins)
    edges.push_back(c.session.empty(Sizes{count + 1}, self.dtype(), self.device()));
  c.output(bins, self.dtype());
  c.view_list(std::move(edges));
}

// The edges that were given are given back.
void edge_lists_meta(Call& c) {
  check_host(c);
  const Tensor& self = c.tensor("self");
  const Value::Tensors& bins = c.tensors("bins");
  if (self.dim() < 2 || self.size(-1) != int64_t(bins.size()))
    c.error(fmt::format("expects edges for each coordinate of {}, got {}", describe(self), bins.size()));
  Sizes sizes;
  for (const Tensor& edges : bins) sizes.push_back(edges.numel() - 1);
  c.output(sizes, self.dtype());
  c.view_list(bins);
}

constexpr Op kHistograms[] = {
    no_gradient("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, "
                "bool density=False) -> (Tensor hist, Tensor bin_edges)",
                "how many elements each of equal bins has, and their edges", count_meta, {"f32[5]@h1 3"}),
    no_gradient("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) "
                "-> (Tensor hist, Tensor bin_edges)",
                "how many elements each bin has, and the bins' edges", edges_meta, {"f32[5]@h1 f32[4]@h1"}),
    no_gradient("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> (Tensor hist, Tensor[] bin_edges)",
                "how many rows each of equal boxes has, and their edges", counts_meta, {"f32[5,2]@h1 (3 4)"}),
    no_gradient("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? "
                "weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
                "how many rows each box has, and the boxes' edges", edge_lists_meta,
                {"f32[5,2]@h1 (f32[4]@h1 f32[3]@h1)"})};

}  // namespace

Tables histogram_operators() {
  static constexpr Records tables[] = {kHistograms};
  return tables;
}

}  // namespace metaprof
