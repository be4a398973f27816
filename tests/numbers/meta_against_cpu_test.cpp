// What our records say about sizes, dtypes, strides and aliases of results, against libtorch's CPU kernels:
// all examples of all operators. Composite operators are compared with libtorch's own, numbers included.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "meta/ops/all.h"
#include "tests/numbers/example_program.h"
#include "tests/numbers/not_checked.h"

namespace metaprof {
namespace {

// Where the operator does not run on libtorch 1.13's CPU.
constexpr NotChecked kNoNumbers[] = {
    {"bitsandbytes::*", "kernels of another library than the framework"},
    {"torchvision::*", "kernels of another library than the framework"},
    {"metaprof::*", "a compiler makes its kernel"},
    {"aten::*cudnn_*", "a library of the GPU; its operators have no kernel on the host"},
    {"aten::_thnn_fused_*", "a kernel of the GPU"},
    {"aten::batch_norm_stats(*", "a kernel of the GPU"},
    {"aten::_fused_*", "a kernel of the GPU, or newer than libtorch 1.13"},
    {"aten::_amp_*", "a kernel of the GPU"},
    {"aten::*scaled_dot_product_*", "newer than libtorch 1.13"},
    {"aten::_flash_attention_*", "a kernel of the GPU"},
    {"aten::_efficient_attention_*", "a kernel of the GPU"},
    {"aten::_jagged_to_padded_dense_forward(*", "newer than libtorch 1.13"},
    {"aten::_padded_dense_to_jagged_forward(*", "newer than libtorch 1.13"},
    {"aten::_grouped_mm(*", "newer than libtorch 1.13"},
    {"aten::_scaled_*", "newer than libtorch 1.13"},
    {"aten::_nnpack_spatial_convolution(*", "libtorch is built without NNPACK"},
    {"aten::mkldnn_rnn_layer*", "newer than libtorch 1.13"},
    {"aten::lstm.input(*", "on the host it is mkldnn_rnn_layer"},
    {"aten::*_native_batch_norm_legit*", "newer than libtorch 1.13"},
    {"aten::_foreach_*", "newer than libtorch 1.13"},
    {"aten::linspace.*_*", "newer than libtorch 1.13"},
    {"aten::logspace.*_*", "newer than libtorch 1.13"},
    {"aten::empty_permuted(*", "newer than libtorch 1.13"},
    {"aten::any.dims(*", "newer than libtorch 1.13"},
    {"aten::all.dims(*", "newer than libtorch 1.13"},
    {"aten::_chunk_cat(*", "newer than libtorch 1.13"},
    {"aten::hash_tensor(*", "newer than libtorch 1.13"},
    {"aten::nonzero_static(*", "newer than libtorch 1.13"},
    {"aten::floor_divide_*", "newer than libtorch 1.13"},
    {"aten::frac*(i64*", "newer than libtorch 1.13 for integers"},
    {"aten::*sparse*", "sparse tensors have no numbers"},
    {"aten::log_sigmoid_backward(*", "the example's buffer is CUDA's, which has no elements"},
    {"aten::*embedding_bag*", "sizes of the bookkeeping results are those of CUDA"},
    {"aten::masked_select_backward(*", "the example's mask selects more elements than grad has"},
    {"aten::_assert_scalar(*", "a check that the exporter writes"},
    {"aten::sym_constrain_range*", "a check that the exporter writes"},
};

// Where libtorch 1.13 and PyTorch 2.11 differ, or ours from both.
constexpr NotChecked kDifferent[] = {
    {"aten::*_copy*", "2.11 copies to row-major memory, 1.13 keeps the order of the view"},
    {"aten::max_pool1d(*", "its body allocates where the CPU's kernel computes: no numbers"},
    {"aten::ctc_loss.Tensor(*", "lengths in tensors are data: all count as the longest"},
    {"aten::fft_*", "strides of transforms are those of cuFFT"},
    {"aten::set_*", "the argument looks elsewhere when it is compared"},
};

bool refused(std::string_view message) {
  return message.find("cannot be written in place") != std::string_view::npos ||
         message.find("the framework has no derivative") != std::string_view::npos;
}

std::vector<at::Tensor> tensors_of(CpuNumbers& numbers, const Results& results) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < results.size(); ++i) {
    const Value& value = results.value(i);
    if (value.is_tensor()) tensors.push_back(numbers.of(value.tensor()));
    if (value.is_tensors())
      for (const Tensor& tensor : value.tensors()) tensors.push_back(numbers.of(tensor));
  }
  return tensors;
}

std::vector<at::Tensor> tensors_of(const std::vector<c10::IValue>& results) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : results) {
    if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  }
  return tensors;
}

// Empty: they are equal.
std::string difference(const at::Tensor& ours, const at::Tensor& theirs) {
  if (ours.sizes() != theirs.sizes()) return "sizes";
  if (ours.scalar_type() != theirs.scalar_type()) return "dtype";
  for (int64_t d = 0; d < ours.dim(); ++d)
    if (ours.size(d) > 1 && ours.numel() > 0 && ours.stride(d) != theirs.stride(d)) return "strides";
  const at::Tensor a = ours.to(at::kDouble).contiguous(), b = theirs.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.data_ptr<double>()[i], y = b.data_ptr<double>()[i];
    if (!(std::abs(x - y) <= 1e-5 + 1e-4 * std::abs(y)) && !(std::isnan(x) && std::isnan(y)) && x != y)
      return fmt::format("element {}: {}, libtorch has {}", i, x, y);
  }
  return {};
}

// What our body comes to, and what libtorch's operator of that name does. Nothing where it has none.
std::string compare_composite(ExampleProgram& program, int& compared) {
  std::vector<c10::IValue> theirs;
  std::vector<Value> arguments = program.fresh_arguments();
  for (size_t i = arguments.size(); i < program.op.schema.arguments.size(); ++i)
    arguments.push_back(program.op.schema.arguments[i].default_value);
  try {
    CpuNumbers::seed(1);
    theirs = program.numbers->libtorch_results(program.op, arguments);
  } catch (const NoNumbers&) {
    return {};
  }
  ++compared;
  const std::vector<at::Tensor> a = tensors_of(*program.numbers, program.evaluate()), b = tensors_of(theirs);
  if (a.size() != b.size()) return fmt::format("{} results, libtorch has {}", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string what = difference(a[i], b[i]);
    if (!what.empty()) return fmt::format("result {}: {}", i, what);
  }
  return {};
}

TEST(MetaAgainstCpu, ResultsOfEveryExample) {
  Exceptions no_numbers(kNoNumbers), different(kDifferent);
  int calls = 0, composites = 0;
  const char* only = std::getenv("METAPROF_ONLY");  // part of a name, to look at one operator
  for (const auto& op : standard_registry().operators()) {
    if (only && op->name.find(only) == std::string::npos) continue;
    for (std::string_view example : op->record.examples) {
      const std::string call = fmt::format("{}({})", op->name, example);
      try {
        ExampleProgram program(*op, example, {.double_precision = false, .gradients = false});
        program.fill(/*finite=*/false);
        ++calls;
        if (op->record.meta.composite) {
          const std::string what = compare_composite(program, composites);
          if (!what.empty() && !different.find(call)) ADD_FAILURE() << call << ": " << what;
        }
        if (program.numbers->differences().empty()) continue;
        if (!different.find(call)) ADD_FAILURE() << call << ": " << program.numbers->differences().front();
      } catch (const Error& error) {
        if (!refused(error.what()) && !no_numbers.find(call)) ADD_FAILURE() << call << ": " << error.what();
      }
    }
  }
  GTEST_LOG_(INFO) << fmt::format("{} calls compared, {} of them composite", calls, composites);
  if (only) return;
  for (Exceptions* table : {&no_numbers, &different})
    for (std::string_view entry : table->not_met()) ADD_FAILURE() << entry << " is equal: remove its entry";
}

}  // namespace
}  // namespace metaprof
