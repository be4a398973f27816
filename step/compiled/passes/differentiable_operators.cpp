#include "step/compiled/passes/differentiable_operators.h"

#include <unordered_map>

namespace metaprof::ir {
namespace {

// The framework differentiates in graphs what somebody wrote a formula for in its own language
// (torch/csrc/jit/runtime/symbolic_script.cpp and autodiff.cpp, 2.11); no rule says which these are: exp, but not
// square; pooling, but not convolution. What this project's records could differentiate besides stays with eager
// autograd, so that a graph is cut where the framework cuts it.
//
// Broadcasting operators read the sizes of their arguments and of the result and compare them: three and two nodes.
constexpr int64_t kBroadcasting = 5;

struct Row {
  std::string_view name;
  int64_t added = 0;
};

constexpr Row kRows[] = {
    // arithmetic
    {"aten::add.Tensor", kBroadcasting},
    {"aten::sub.Tensor", kBroadcasting},
    {"aten::mul.Tensor", kBroadcasting},
    {"aten::div.Tensor", kBroadcasting},
    {"aten::div.Tensor_mode", kBroadcasting},
    {"aten::rsub.Tensor", kBroadcasting},
    {"aten::pow.Tensor_Tensor", kBroadcasting},
    {"aten::max.other", kBroadcasting},
    {"aten::min.other", kBroadcasting},
    {"aten::where.self", kBroadcasting},
    {"aten::lerp.Scalar", kBroadcasting},
    {"aten::lerp.Tensor", 7},
    {"aten::addcmul", 7},
    {"aten::add.Scalar"},
    {"aten::sub.Scalar"},
    {"aten::mul.Scalar"},
    {"aten::div.Scalar"},
    {"aten::div.Scalar_mode"},
    {"aten::rsub.Scalar"},
    {"aten::pow.Tensor_Scalar"},
    {"aten::pow.Scalar"},
    {"aten::fmod.Scalar"},
    {"aten::remainder.Scalar"},
    {"aten::neg"},
    {"aten::abs"},
    {"aten::reciprocal"},
    {"aten::sqrt"},
    {"aten::rsqrt"},
    {"aten::clamp", 3},
    {"aten::clamp.Tensor", 3},
    // comparisons
    {"aten::lt.Scalar"},
    {"aten::le.Scalar"},
    {"aten::gt.Scalar"},
    {"aten::ge.Scalar"},
    {"aten::eq.Scalar"},
    {"aten::ne.Scalar"},
    // functions
    {"aten::exp"},
    {"aten::expm1"},
    {"aten::log"},
    {"aten::log10"},
    {"aten::log1p"},
    {"aten::log2"},
    {"aten::sin"},
    {"aten::cos"},
    {"aten::tan"},
    {"aten::sinh"},
    {"aten::cosh"},
    {"aten::tanh"},
    {"aten::asin"},
    {"aten::acos"},
    {"aten::atan"},
    {"aten::erf"},
    {"aten::erfc"},
    {"aten::ceil"},
    {"aten::floor"},
    {"aten::frac"},
    {"aten::round"},
    {"aten::trunc"},
    // activations
    {"aten::sigmoid"},
    {"aten::relu"},
    {"aten::relu6"},
    {"aten::leaky_relu"},
    {"aten::gelu"},
    {"aten::silu"},
    {"aten::hardswish"},
    {"aten::hardsigmoid"},
    {"aten::hardshrink", 4},
    {"aten::hardtanh", 3},
    {"aten::softplus"},
    {"aten::threshold"},
    // products
    {"aten::mm"},
    {"aten::bmm"},
    {"aten::mv"},
    {"aten::dot"},
    {"aten::matmul"},
    {"aten::linear"},
    {"aten::addmm", 3},
    // reductions
    {"aten::mean", 3},
    {"aten::mean.dim", 2},
    {"aten::sum", 1},
    {"aten::sum.dim_IntList", 1},
    {"aten::logsumexp", 1},
    {"aten::std"},
    {"aten::std.dim"},
    {"aten::std.correction"},
    {"aten::var"},
    {"aten::var.dim"},
    {"aten::var.correction"},
    // geometry
    {"aten::t"},
    {"aten::transpose.int"},
    {"aten::permute"},
    {"aten::reshape", 1},
    {"aten::view", 1},
    {"aten::expand", 3},
    {"aten::expand_as", 3},
    {"aten::squeeze", 1},
    {"aten::squeeze.dim", 1},
    {"aten::unsqueeze"},
    {"aten::contiguous"},
    {"aten::cat", 6},
    {"aten::stack"},
    {"aten::split.Tensor"},
    {"aten::split_with_sizes"},
    {"aten::unbind.int"},
    {"aten::index.Tensor"},
    {"aten::meshgrid", 6},
    // types
    {"aten::to.dtype", 1},
    {"aten::to.dtype_layout", 2},
    {"aten::to.other"},
    {"aten::type_as"},
    {"aten::ones_like"},
    {"aten::full_like"},
    {"aten::nonzero"},
    // layers
    {"aten::batch_norm"},
    {"aten::native_batch_norm"},
    {"aten::layer_norm"},
    {"aten::dropout"},
    {"aten::embedding", 2},
    {"aten::softmax.int"},
    {"aten::log_softmax.int"},
    {"aten::nll_loss"},
    {"aten::adaptive_avg_pool1d"},
    {"aten::adaptive_avg_pool2d"},
    {"aten::adaptive_avg_pool3d"},
    {"aten::avg_pool2d"},
    {"aten::max_pool2d"},
    {"aten::max_pool2d_with_indices"},
    {"aten::_slow_conv2d_forward"},
};

const Row* row_of(const Node& node) {
  static const std::unordered_map<std::string_view, const Row*> rows = [] {
    std::unordered_map<std::string_view, const Row*> rows;
    for (const Row& row : kRows) rows.emplace(row.name, &row);
    return rows;
  }();
  const auto found = rows.find(node.op ? std::string_view(node.op->name) : std::string_view(node.name));
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace

bool is_differentiable_in_graph(const Node& node) {
  if (node.is(Kind::autograd_zero) || node.is(Kind::autograd_add) || node.is(Kind::constant_chunk))
    return true;
  if (!node.is(Kind::call) || !row_of(node) || node.op->writes) return false;
  // Without training it is the identity, which nobody wrote a formula for.
  if (node.name == "aten::dropout") return node.has_constant(2) && node.constant(2).boolean();
  if (node.name == "aten::expand") return node.has_constant(1) && node.has_constant(2);
  return true;
}

bool is_view_outside(const Node& node) {
  static constexpr std::string_view kViews[] = {"aten::view",       "aten::view_as",       "aten::reshape",
                                                "aten::reshape_as", "aten::transpose.int", "aten::expand",
                                                "aten::expand_as"};
  for (const std::string_view name : kViews)
    if (node.name == name) return true;
  return false;
}

int64_t added_nodes(const Node& node) {
  const Row* row = row_of(node);
  return row ? row->added : 0;
}

}  // namespace metaprof::ir
