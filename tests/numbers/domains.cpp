#include "tests/numbers/domains.h"

#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

struct Rule {
  std::string_view op, argument;
  Domain domain;
};

constexpr Rule kRules[] = {
    {"aten::cholesky", "self", Domain::positive_definite},
    {"aten::linalg_cholesky", "self", Domain::positive_definite},
    {"aten::linalg_cholesky_ex", "self", Domain::positive_definite},
    {"aten::_linalg_eigh", "A", Domain::symmetric},
    {"aten::linalg_eigh", "self", Domain::symmetric},
    {"aten::linalg_eigvalsh", "self", Domain::symmetric},
    {"aten::_pack_padded_sequence", "lengths", Domain::lengths},
    {"aten::lu_unpack", "LU_pivots", Domain::pivots},
    {"aten::lu_solve", "LU_pivots", Domain::pivots},
    {"aten::linalg_lu_solve", "pivots", Domain::pivots},
    {"aten::linalg_ldl_solve", "pivots", Domain::pivots},
};

}  // namespace

Domain domain_of(const Operator& op, size_t argument) {
  for (const Rule& rule : kRules)
    if (op.name == rule.op && op.schema.arguments[argument].name == rule.argument) return rule.domain;
  return Domain::any;
}

Tensor brought_into(Domain domain, Session& session, const Tensor& tensor) {
  if (domain != Domain::symmetric && domain != Domain::positive_definite) return tensor;
  const Tensor symmetric = (tensor + transpose(tensor, -2, -1)) * 0.5;
  if (domain == Domain::symmetric) return symmetric;
  // More on the diagonal than n − 1 others and its own below 2 can take away (Gershgorin).
  const int64_t n = tensor.size(-1);
  const Tensor identity = call<"eye">(session, n, tensor.dtype(), Value(), tensor.device());
  return symmetric + identity * double(2 * n);
}

int64_t pivot(int64_t index, int64_t rows) { return std::min(index % rows + 2, rows); }

}  // namespace metaprof
