// Calls that are well formed and wrong, as anybody may write them: each way of running a program refuses them in the same
// words, in one line and with exit status 2. The loss needs each call: a compiled graph leaves others out.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <span>

#include "tests/cli/program.h"

namespace metaprof {
namespace {

struct WrongCall {
  const char* call;
  const char* message;
};

constexpr const char* kInputs =
    "metaprof program 1\n"
    "input s = %s: f32[]\n"
    "input v = %v: f32[3]\n"
    "input x = %x: f32[2,3]\n"
    "input image = %image: f32[2,3,8,8]\n"
    "input none = %none: f32[1,0,3]\n"
    "input i = %i: i64[2,3]\n"
    "parameter w = %w: f32[4,3] grad\n"
    "parameter b = %b: f32[4] grad\n";

// A file of the test in the temporary folder; gone at its end.
class ProgramFile {
 public:
  explicit ProgramFile(const std::string& call) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / (std::string("metaprof_") + test->name() + ".mp");
    std::ofstream(path_) << kInputs << call
                         << "\n%of_weights = aten::sum(%w)\n%of_call = aten::sum(%a)\n"
                            "%loss: f32[] = aten::add.Tensor(%of_weights, %of_call)\nloss = %loss\n";
  }
  ~ProgramFile() { std::filesystem::remove(path_); }
  ProgramFile(const ProgramFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void expect_refused_everywhere(std::span<const WrongCall> calls) {
  for (const auto& [call, message] : calls) {
    SCOPED_TRACE(call);
    const ProgramFile file(call);
    expect_refusal("profile " + file.path(), message);
    expect_refusal("profile --execution graph " + file.path(), message);
    expect_refusal("graph " + file.path(), message);
    expect_refusal("cudagraphs " + file.path(), message);
  }
}

TEST(WrongCalls, OfAnotherKindThanTheSchemaSays) {
  constexpr WrongCall kCalls[] = {
      {"%a = aten::tanh()", "aten::tanh: no tensor is known for the argument 'self'"},
      {"%a = aten::relu(None)", "aten::relu: no tensor is known for the argument 'self'"},
      {"%a = aten::cat([%x, None])", "aten::cat: no tensor is known for the argument 'tensors'"},
      {"%a = aten::relu([%x])", "aten::relu: no tensor is known for the argument 'self'"},
      {"%a = aten::relu(\"x\")", "aten::relu: the argument 'self' takes a tensor, got \"x\""},
      {"%a = aten::cat(%x)", "aten::cat: the argument 'tensors' takes a list of tensors, got f32[2,3]"},
      {"%a = aten::unsqueeze(%x, 0.5)", "aten::unsqueeze: the argument 'dim' takes an integer, got 0.5"},
      {"%a = aten::unsqueeze(%x)", "aten::unsqueeze: the argument 'dim' takes an integer, got None"},
      {"%a = aten::view(%x, [0.5])", "aten::view: the argument 'size' takes a list of integers, got (0.5)"},
      {"%a = aten::leaky_relu(%x, \"x\")",
       "aten::leaky_relu: the argument 'negative_slope' takes a number, got \"x\""},
      {"%a = aten::linalg_qr(%x, 1)", "aten::linalg_qr: the argument 'mode' takes a string, got 1"},
      {"%a = aten::sum.dim_IntList(%x, [1], 0.5)",
       "aten::sum.dim_IntList: the argument 'keepdim' takes a boolean, got 0.5"},
      {"%a = aten::min()", "aten::min: no tensor is known for the argument 'self'"},
      {"[%made, %more] = aten::_foreach_atan([%x])\n%a = aten::frac(%more)",
       "aten::frac: no tensor is known for the argument 'self'"},
      {"[%made] = aten::_foreach_atan_([%x])\n%a = aten::frac(%made)",
       "aten::frac: no tensor is known for the argument 'self'"},
  };
  expect_refused_everywhere(kCalls);
}

TEST(WrongCalls, WithLessThanTheRecordNeeds) {
  constexpr WrongCall kCalls[] = {
      {"%a = aten::linear(0.5, %w, %b)", "aten::linear: needs input.dim >= 1, got f64[]"},
      {"%a = aten::linear(%s, %w, %b)", "aten::linear: needs input.dim >= 1, got f32[]"},
      {"%a = aten::matmul(%s, %x)", "aten::matmul: needs self.dim > 0, got f32[]"},
      {"%a = aten::trapezoid.dx(%s)", "aten::trapezoid.dx: needs y.dim >= 1, got f32[]"},
      {"%a = aten::pad_sequence([%s])", "aten::pad_sequence: needs sequences.dim >= 1, got (f32[])"},
      {"%a = aten::linalg_solve_triangular(%x, %s, upper=True)",
       "aten::linalg_solve_triangular: needs B.dim >= 2, got f32[]"},
      {"%a = aten::bmm(%x, %image)", "aten::bmm: needs self.dim == 3, got f32[2,3]"},
      {"%a = aten::_fft_r2c(%x, [], 2, True)", "aten::_fft_r2c: needs dim.length > 0, got ()"},
      {"%a = aten::_fft_r2c(%x, [2], 2, True)", "aten::_fft_r2c: needs dim in self, got (2) and f32[2,3]"},
      {"%a = aten::_chunk_cat([%x, %x], 1, 0)", "aten::_chunk_cat: needs num_chunks > 0, got 0"},
      {"%a = aten::_chunk_cat(tensors[], 1, 2)", "aten::_chunk_cat: needs tensors.length > 0, got ()"},
      {"%a = aten::cat(tensors[])", "aten::cat: needs tensors.length > 0, got ()"},
      {"[%a] = aten::chunk(%x, 0)", "aten::chunk: needs chunks > 0, got 0"},
      {"[%a] = aten::_foreach_add.List([%x, %x], [%x])",
       "aten::_foreach_add.List: needs lists of one length, not empty; got 2 and 1"},
      {"[%a] = aten::_foreach_minimum.ScalarList([%x, %x], [0.5])",
       "aten::_foreach_minimum.ScalarList: needs lists of one length, not empty; got 2 and 1"},
      {"%a = aten::_cudnn_rnn_flatten_weight(tensors[], 4, 1, 2, 2, 0, 1, True, False)",
       "aten::_cudnn_rnn_flatten_weight: needs weight_arr.length > 0, got ()"},
      {"%a = aten::_cudnn_rnn_flatten_weight([%w, %w, %w, %w, %w], 4, 3, 2, 4, 0, 1, True, False)",
       "aten::_cudnn_rnn_flatten_weight: 5 weights do not fit 1 layers and directions"},
      {"%a = aten::_cdist_backward(%v, %x, %x, 2.0, %x)",
       "aten::_cdist_backward: needs grad.dim >= 2, got f32[3]"},
      {"%a, %c, %d = aten::_native_batch_norm_legit.no_stats(%none, None, None, True, 0.1, 1e-5)",
       "aten::_native_batch_norm_legit.no_stats: needs input.numel > 0 if training, got f32[1,0,3]"},
      {"%a, %c, %d = aten::native_batch_norm(%image, None, None, None, None, False, 0.1, 1e-5)",
       "aten::native_batch_norm: needs running_mean given unless training, got None"},
      {"%a = aten::embedding_dense_backward(%s, %i, 4, 0, False)",
       "aten::embedding_dense_backward: needs grad_output.dim > indices.dim, got f32[] and i64[2,3]"},
      {"%a = aten::_unsafe_masked_index_put_accumulate(%x, %x, tensors[], %x)",
       "aten::_unsafe_masked_index_put_accumulate: needs indices.length > 0, got ()"},
      {"%a, %c, %d = aten::_scaled_dot_product_cudnn_attention_backward(%x, %x, %x, %x, %x, %x, %x, %x, "
       "None, None, None, 1, "
       "1, 0.0, True)",
       "aten::_scaled_dot_product_cudnn_attention_backward: needs query.dim == 4, got f32[2,3]"},
      {"%a, %c, %d, %e = metaprof::flex_attention_backward(%x, None, %x, %x, %x, %x, %x, [%x])",
       "metaprof::flex_attention_backward: needs query.dim == 4, got f32[2,3]"},
      {"%a, %c, %d = aten::convolution_backward(%image, %image, %image, None, [1], [0], [1], False, [0], 1, "
       "[True])",
       "aten::convolution_backward: needs output_mask.length == 3, got (True)"},
      {"%a = aten::max_pool2d_with_indices_backward(%image, %image, [2, 2], [2, 2], [0, 0], [1, 1], False, "
       "%i)",
       "aten::max_pool2d_with_indices_backward: needs indices.dim >= 3, got i64[2,3]"},
      {"%a = aten::adaptive_max_pool2d_backward(%image, %image, %none)",
       "aten::adaptive_max_pool2d_backward: needs indices.sizes == grad_output.sizes, got f32[1,0,3] and "
       "f32[2,3,8,8]"},
      {"%a = aten::_adaptive_avg_pool2d_backward(%x, %image)",
       "aten::_adaptive_avg_pool2d_backward: needs grad_output.dim >= 3, got f32[2,3]"},
      {"%a = aten::combinations(%v, 9223372036854775807)",
       "aten::combinations: needs r in 0 to 64, got 9223372036854775807"},
      {"%a, %c = aten::triangular_solve(%v, %w)", "aten::triangular_solve: needs self.dim >= 2, got f32[3]"},
  };
  expect_refused_everywhere(kCalls);
}

TEST(WrongCalls, WithTensorsThatNoOperatorCanTake) {
  constexpr WrongCall kCalls[] = {
      {"%a = aten::index_put(%x, tensors[], %x)", "aten::index_put: needs at least one index tensor"},
      {"%a = aten::lu_unpack_backward(None, None, 3, 3)",
       "aten::sum: no tensor is known for the argument 'self'"},
      {"%a = aten::_grad_sum_to_size(%v, [2, 3])",
       "aten::_grad_sum_to_size: f32[3] cannot be summed to [2,3]"},
      {"%a = aten::sum_to_size(%v, [2, 3])", "aten::sum_to_size: f32[3] cannot be summed to [2,3]"},
      {"%h = aten::expand(%s, [2147483648])\n%l = aten::arange(5, dtype=i64)\n"
       "%a, %c = aten::_pad_packed_sequence(%h, %l, False, 0.0, 5)",
       "aten::_pad_packed_sequence: packs at most 16777216 sequences of at most 16777216 steps, got "
       "429496730 "
       "of 5"},
      {"%a = aten::narrow(%s, 0, 0, 1)", "dimension 0 is out of range: there are no dimensions"},
      {"%h = aten::expand(%s, [4294967296])\n%a, %c = aten::sort(%h)",
       "aten::sort: 4294967296 elements cannot be sorted; at most 2147483647 can"},
  };
  expect_refused_everywhere(kCalls);
}

TEST(WrongCalls, ThatWouldMakeMoreTensorsThanTheHostCanHold) {
  constexpr WrongCall kCalls[] = {
      {"[%a] = aten::vsplit.int(%x, 9223372036854775807)",
       "aten::tensor_split.sections: makes at most 1048576 tensors; results == sections, got "
       "9223372036854775807"},
      {"[%a] = aten::chunk(%x, 9223372036854775807)",
       "aten::chunk: makes at most 1048576 tensors; results == chunks, got 9223372036854775807"},
      {"%h = aten::expand(%s, [1099511627776])\n[%a] = aten::unbind.int(%h)",
       "aten::unbind.int: makes at most 1048576 tensors; results == self.size(dim), got f32[1099511627776]"},
      {"%h = aten::expand(%s, [1099511627776])\n[%a] = aten::split.Tensor(%h, 2)",
       "aten::split.Tensor: makes at most 1048576 tensors; results == self.size(dim) / split_size, got "
       "f32[1099511627776]"},
  };
  expect_refused_everywhere(kCalls);
}

// Loops of torch._higher_order_ops: `parts` are the graphs g0 and g1, `call` the operator's call.
void expect_loop_refused(const std::string& body, const std::string& call, const std::string& message) {
  const std::string condition =
      "%e: f32[0,3] = aten::slice.Tensor(%x, 0, 0, 0)\ngraph {\ninput %a: f32[2,3]\nreturn %a\n} as g0\n";
  const ProgramFile file(condition + "graph {\n" + body + "} as g1\n%a: f32[2,3] = higher_order::" + call);
  for (const std::string mode : {"train", "no-grad"}) {
    const Outcome outcome = run_program("profile " + file.path() + " --trips 1 --mode " + mode);
    EXPECT_EQ(outcome.exit_code, 2) << call;
    EXPECT_NE(outcome.err.find("metaprof: " + message + "\n"), std::string::npos) << outcome.err;
  }
}

TEST(WrongLoops, AreRefusedInOneLine) {
  const std::string one = "input %a: f32[2,3]\n%b: f32[2,3] = aten::relu(%a)\n";
  const std::string many = one + "return %b\nreturn %b\n", slice = "input %a: f32[3]\nreturn %a\n";
  const std::string carries = "a loop carries 1 values from call to call, and its function gives ";
  expect_loop_refused(many, "while_loop(graph(g0), graph(g1), [%x], [])", carries + "2");
  expect_loop_refused(one, "while_loop(graph(g0), graph(g1), [%x], [])", carries + "0");
  expect_loop_refused(one, "scan(graph(g1), [%x], [%x], [])", carries + "0");
  expect_loop_refused(one + "return %b\n", "while_loop(graph(g0), graph(g1))",
                      "a loop takes a list of inputs, got 0");
  expect_loop_refused(one + "return %b\n", "scan(graph(g1), [%x])",
                      "a loop takes two lists of inputs, got 1");
  const std::string no_slice =
      "a function is called for each slice of a tensor, and there is no tensor that has slices";
  expect_loop_refused(slice, "map_impl(graph(g1), [], [])", no_slice);
  expect_loop_refused(slice, "map_impl(graph(g1), [%e], [])", no_slice);
}

}  // namespace
}  // namespace metaprof
