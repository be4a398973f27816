// Every derivative that a record claims, against central differences; composite operators, too.

#include "tests/numbers/gradcheck.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "meta/ops/all.h"
#include "tests/numbers/not_checked.h"

namespace metaprof {
namespace {

constexpr NotChecked kNotChecked[] = {
    // Libraries and devices.
    {"aten::*cudnn_*", "a library of the GPU; its operators have no kernel on the host"},
    {"aten::_thnn_fused_*_cell(*", "a kernel of the GPU; lstm_cell and gru_cell are its formula"},
    {"aten::_scaled_dot_product_*_attention(*", "a kernel of the GPU"},
    {"aten::_flash_attention_forward(*", "a kernel of the GPU"},
    {"aten::_efficient_attention_forward(*", "a kernel of the GPU"},
    {"aten::_jagged_to_padded_dense_forward(*", "newer than libtorch 1.13"},
    {"aten::_padded_dense_to_jagged_forward(*", "newer than libtorch 1.13"},
    {"aten::_linalg_solve_ex(*", "libtorch 1.13 factorises the transpose, as versions before 2.11"},
    {"aten::linalg_solve_ex(*", "libtorch 1.13 factorises the transpose, as versions before 2.11"},
    {"aten::linalg_solve(*", "libtorch 1.13 factorises the transpose, as versions before 2.11"},
    {"aten::linalg_tensorsolve(*", "libtorch 1.13 factorises the transpose, as versions before 2.11"},
    {"aten::_grouped_mm(*", "newer than libtorch 1.13"},
    {"aten::_nnpack_spatial_convolution(*", "computes in float32 alone"},
    {"aten::mkldnn_rnn_layer(*", "newer than libtorch 1.13"},
    {"bitsandbytes::*", "kernels of another library than the framework"},
    {"torchvision::*", "kernels of another library than the framework"},
    {"metaprof::*", "a compiler makes its kernel"},
    {"aten::lstm.input(*", "on the host it is mkldnn_rnn_layer"},
    {"aten::*_batch_norm_*legit*", "newer than libtorch 1.13; native_batch_norm is its formula"},
    // Numbers that differences cannot see.
    {"aten::*fft*", "complex numbers: differences are taken of real ones"},
    {"aten::complex(*", "complex numbers: differences are taken of real ones"},
    {"aten::polar(*", "complex numbers: differences are taken of real ones"},
    {"aten::view_as_complex(*", "complex numbers: differences are taken of real ones"},
    {"aten::view_as_real(*", "complex numbers: differences are taken of real ones"},
    {"aten::_conj*", "complex numbers: differences are taken of real ones"},
    {"aten::chalf(*", "complex numbers: differences are taken of real ones"},
    {"aten::linalg_eig(*", "complex results: differences are taken of real ones"},
    {"aten::linalg_eigvals(*", "complex results: differences are taken of real ones"},
    {"aten::cholesky_solve(*", "the kernel reads one triangle, the formula differentiates both"},
    {"aten::cholesky_inverse(*", "the kernel reads one triangle, the formula differentiates both"},
    {"aten::*ctc_loss*", "the gradient is by definition that of what log_softmax is taken of"},
    {"aten::as_strided_scatter(*", "the framework's gradient of self is that of the part it no longer has"},
    {"aten::normal.*", "the framework defines the gradient of what numbers are drawn around as 0"},
    {"aten::fake_quantize_*", "the framework takes the derivative of rounding for 1 between the bounds"},
    {"aten::_fake_quantize_learnable_*", "the kernels round, and take 32 bits alone"},
    {"aten::_standard_gamma(*", "the framework's derivative is that of the sample's quantile"},
    {"aten::embedding(f32?10,3? i64?5? 0)", "the row of the padding gets no gradient by definition"},
    {"aten::embedding*sparse*", "sparse gradients have no numbers"},
    {"aten::_embedding_bag_sparse_backward(*", "sparse gradients have no numbers"},
    {"aten::embedding_bag*", "sizes of the bookkeeping results are those of CUDA"},
    {"aten::batch_norm_backward(*",
     "statistics are results of the forward: checked as its second derivative"},
    {"aten::native_*_norm_backward(*",
     "statistics are results of the forward: checked as its second derivative"},
    {"aten::log_sigmoid_backward(*", "the example's buffer is CUDA's, which has no elements"},
    {"aten::binary_cross_entropy_backward(*",
     "the kernel takes probabilities outside of (0, 1), its formula does not"},
    {"aten::nll_loss*_backward(*",
     "total_weight is a result of the forward: checked as its second derivative"},
    {"aten::masked_select_backward(*",
     "the example's mask selects as many elements as there are in grad: none"},
    {"aten::_weight_norm_interface(*",
     "the framework ignores the gradient of the norms: _weight_norm is checked"},
    {"aten::*sparse*", "sparse tensors have no numbers"},
};

// Second derivatives that are not as differences are.
constexpr NotChecked kNoSecond[] = {
    {"aten::_weight_norm(*", "the framework ignores the gradient of the norms"},
};

struct Claims {
  int operators = 0, checked = 0, without = 0, gradients = 0, second_gradients = 0;
};

// Every operator is checked by one of its examples or has a reason.
void check(const Operator& op, Exceptions& exceptions, Exceptions& no_second, Claims& claims) {
  std::string why_not;
  bool checked = false;
  for (std::string_view example : op.record.examples) {
    const std::string call = fmt::format("{}({})", op.name, example);
    const Checked result = gradcheck(op, example);
    claims.gradients += result.gradients;
    claims.second_gradients += result.second_gradients;
    if (!result.failure.empty() && !exceptions.find(call) && !no_second.find(call))
      ADD_FAILURE() << call << ": " << result.failure;
    if (result.not_checked.empty()) {
      checked = true;
    } else {
      why_not = result.not_checked;
    }
  }
  ++claims.operators;
  claims.checked += checked;
  // A composite operator claims nothing where its body gives no gradient; nor does a record that says that
  // the framework has no formula.
  const bool claims_nothing = (op.record.meta.composite && why_not.starts_with("no ")) ||
                              why_not.find("the framework has no derivative") != std::string::npos;
  if (checked || why_not.empty()) return;
  if (claims_nothing) {
    ++claims.without;
    return;
  }
  const std::string first = fmt::format("{}({})", op.name, op.record.examples.front());
  if (!exceptions.find(first)) ADD_FAILURE() << first << ": " << why_not;
}

TEST(Gradcheck, EveryDerivativeThatARecordClaims) {
  Exceptions exceptions(kNotChecked), no_second(kNoSecond);
  Claims claims;
  const char* only = std::getenv("METAPROF_ONLY");  // part of a name, to look at one operator
  for (const auto& op : standard_registry().operators()) {
    if (only && op->name.find(only) == std::string::npos) continue;
    if (op->has_derivative() || op->record.meta.composite) check(*op, exceptions, no_second, claims);
  }
  GTEST_LOG_(INFO) << fmt::format(
      "{} of {} operators checked, {} have no gradient by their body; {} gradients and {} second gradients",
      claims.checked, claims.operators, claims.without, claims.gradients, claims.second_gradients);
  for (const std::string& line : exceptions.lines()) GTEST_LOG_(INFO) << line;
  for (const std::string& line : no_second.lines()) GTEST_LOG_(INFO) << "second derivatives: " << line;
  if (only) return;
  for (Exceptions* table : {&exceptions, &no_second})
    for (std::string_view calls : table->not_met()) ADD_FAILURE() << calls << " is checked: remove its entry";
}

// Those that the other test leaves out, in the version that does as libtorch 1.13 does.
TEST(Gradcheck, SystemsOfEquationsBefore211) {
  constexpr FrameworkVersion version{.major = 2, .minor = 10};
  for (const char* name : {"aten::_linalg_solve_ex", "aten::linalg_solve_ex", "aten::linalg_solve",
                           "aten::linalg_tensorsolve"}) {
    const Operator* op = registry_for(version).find(name);
    ASSERT_NE(op, nullptr) << name;
    for (const std::string_view example : op->record.examples) {
      const Checked result = gradcheck(*op, example, "cpu", version);
      EXPECT_EQ(result.failure, "") << name << " " << example;
      EXPECT_GT(result.gradients, 0) << name << " " << example;
    }
  }
}

}  // namespace
}  // namespace metaprof
