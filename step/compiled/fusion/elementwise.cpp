#include "step/compiled/fusion/elementwise.h"

#include <algorithm>

namespace metaprof::ir {
namespace {

// The operators for which its code generator has a line (torch/csrc/jit/passes/graph_fuser.cpp, 2.11): gelu and silu,
// which are as elementwise as these, are not among them.
constexpr std::string_view kWithCode[] = {"aten::_cast_Float",
                                          "aten::abs",
                                          "aten::acos",
                                          "aten::add.Scalar",
                                          "aten::add.Tensor",
                                          "aten::addcmul",
                                          "aten::asin",
                                          "aten::atan",
                                          "aten::atan2",
                                          "aten::ceil",
                                          "aten::clamp",
                                          "aten::cos",
                                          "aten::cosh",
                                          "aten::div.Scalar",
                                          "aten::div.Tensor",
                                          "aten::eq.Scalar",
                                          "aten::eq.Tensor",
                                          "aten::erf",
                                          "aten::erfc",
                                          "aten::exp",
                                          "aten::expm1",
                                          "aten::floor",
                                          "aten::fmod.Tensor",
                                          "aten::frac",
                                          "aten::ge.Scalar",
                                          "aten::ge.Tensor",
                                          "aten::gt.Scalar",
                                          "aten::gt.Tensor",
                                          "aten::le.Scalar",
                                          "aten::le.Tensor",
                                          "aten::lerp.Scalar",
                                          "aten::lerp.Tensor",
                                          "aten::lgamma",
                                          "aten::log",
                                          "aten::log10",
                                          "aten::log1p",
                                          "aten::log2",
                                          "aten::logit",
                                          "aten::lt.Scalar",
                                          "aten::lt.Tensor",
                                          "aten::max.other",
                                          "aten::min.other",
                                          "aten::mul.Scalar",
                                          "aten::mul.Tensor",
                                          "aten::ne.Scalar",
                                          "aten::ne.Tensor",
                                          "aten::neg",
                                          "aten::pow.Scalar",
                                          "aten::pow.Tensor_Scalar",
                                          "aten::pow.Tensor_Tensor",
                                          "aten::rand_like",
                                          "aten::reciprocal",
                                          "aten::relu",
                                          "aten::remainder.Tensor",
                                          "aten::round",
                                          "aten::rsqrt",
                                          "aten::sigmoid",
                                          "aten::sin",
                                          "aten::sinh",
                                          "aten::sqrt",
                                          "aten::sub.Scalar",
                                          "aten::sub.Tensor",
                                          "aten::tan",
                                          "aten::tanh",
                                          "aten::threshold",
                                          "aten::trunc",
                                          "aten::type_as",
                                          "aten::where.self"};
static_assert(std::ranges::is_sorted(kWithCode));

}  // namespace

bool is_fusible(const Node& node) {
  if (!node.is(Kind::call) || !std::ranges::binary_search(kWithCode, std::string_view(node.op->name)))
    return false;
  return std::ranges::all_of(node.inputs, [](const Value* input) {
    return input->node->is(Kind::constant) || input->type.is_tensor() || input->type.kind == Type::Kind::real;
  });
}

}  // namespace metaprof::ir
