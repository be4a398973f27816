// Products of chains of matrices.

#include <fmt/format.h>

#include "meta/ops/products/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

// The cheapest order by dynamic programming (Cormen et al.): where to cut each chain i…j.
std::vector<std::vector<size_t>> chain_cuts(const std::vector<Tensor>& matrices) {
  const size_t n = matrices.size();
  std::vector<std::vector<int64_t>> cost(n, std::vector<int64_t>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  auto rows = [&](size_t i) { return i < n ? matrices[i].size(0) : matrices[n - 1].size(1); };
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      const size_t j = i + length;
      cost[i][j] = INT64_MAX;
      for (size_t k = i; k < j; ++k) {
        const int64_t total = cost[i][k] + cost[k + 1][j] + rows(i) * rows(k + 1) * rows(j + 1);
        if (total >= cost[i][j]) continue;
        cost[i][j] = total;
        cut[i][j] = k;
      }
    }
  }
  return cut;
}

Tensor multiply_chain(const std::vector<Tensor>& matrices, const std::vector<std::vector<size_t>>& cut,
                      size_t i, size_t j) {
  if (i == j) return matrices[i];
  // Arguments of one C++ call: the right chain is multiplied first; both die behind their product.
  const Tensor right = multiply_chain(matrices, cut, cut[i][j] + 1, j);
  const Tensor left = multiply_chain(matrices, cut, i, cut[i][j]);
  return mm(left, right);
}

// aten/src/ATen/native/LinearAlgebra.cpp, multi_dot_impl.
void multi_dot_body(Call& c) {
  std::vector<Tensor> chain = c.tensors("tensors");
  if (chain.size() < 2) c.error(fmt::format("needs two tensors or more, got {}", chain.size()));
  Sizes sizes;
  const bool vector_first = chain.front().dim() == 1, vector_last = chain.back().dim() == 1;
  if (!vector_first) sizes.push_back(chain.front().size(0));
  if (!vector_last) sizes.push_back(chain.back().size(1));
  if (vector_first) chain.front() = unsqueeze(chain.front(), 0);
  if (vector_last) chain.back() = unsqueeze(chain.back(), -1);
  for (const Tensor& matrix : chain)
    if (matrix.dim() != 2) c.error(fmt::format("expects matrices, got {}", describe(matrix)));
  if (chain.size() == 2) return c.result(view(mm(chain[0], chain[1]), sizes));
  if (chain.size() == 3) {
    const int64_t a = chain[0].size(0), b = chain[1].size(0), d = chain[2].size(0), e = chain[2].size(1);
    // (chain[0] · chain[1]) · chain[2], or the other way round: whichever takes fewer products
    const bool left_first = a * b * d + a * d * e <= b * d * e + a * b * e;
    const Tensor product =
        left_first ? mm(mm(chain[0], chain[1]), chain[2]) : mm(chain[0], mm(chain[1], chain[2]));
    return c.result(view(product, sizes));
  }
  c.result(view(multiply_chain(chain, chain_cuts(chain), 0, chain.size() - 1), sizes));
}

void chain_matmul_body(Call& c) {
  const Value::Tensors& matrices = c.tensors("matrices");
  if (matrices.size() == 1) return c.result(matrices[0]);
  c.result(call<"linalg_multi_dot">(c.session, c["matrices"]));
}

constexpr Op kMatrixChain[] = {{.schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor",
                                .summary = "product of a chain in its cheapest order",
                                .meta = composite(multi_dot_body),
                                .derivatives = by_body,
                                .flops = by_body,
                                .examples = {"(f32[2,3] f32[3,4] f32[4,5])"},
                                .facts = {.autocast = Autocast::lower_precision, .product = true}},
                               {.schema = "chain_matmul(Tensor[] matrices) -> Tensor",
                                .summary = "product of a chain in its cheapest order",
                                .meta = composite(chain_matmul_body),
                                .derivatives = by_body,
                                .flops = by_body,
                                .examples = {"(f32[2,3] f32[3,4] f32[4,5])"},
                                .facts = {.autocast = Autocast::lower_precision, .product = true}}};

}  // namespace

Tables matrix_chain_operators() {
  static constexpr Records tables[] = {kMatrixChain};
  return tables;
}

}  // namespace metaprof
