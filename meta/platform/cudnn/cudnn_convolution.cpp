#include "meta/platform/cudnn/cudnn_convolution.h"

#include <algorithm>

namespace metaprof::cudnn {
namespace {

using Integers = ConvolutionQuestion::Integers;

// cudnnDataType_t
enum DataType : int { f32 = 0, f64 = 1, f16 = 2, bf16 = 9 };

DataType data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return f64;
    case DType::f16: return f16;
    case DType::bf16: return bf16;
    default: return f32;
  }
}

Integers output_sizes(const ConvolutionQuestion& q) {
  Integers y{q.x[0], q.w[0]};
  for (size_t d = 0; d < q.stride.size(); ++d)
    y.push_back((q.x[d + 2] + 2 * q.padding[d] - q.dilation[d] * (q.w[d + 2] - 1) - 1) / q.stride[d] + 1);
  return y;
}

Descriptor tensor(Descriptors& made, DType dtype, const Integers& sizes, const Integers& strides,
                  int64_t id) {
  constexpr int64_t alignment =
      32;  // PyTorch says the pointer's, 32 at most; blocks of its allocator have 512
  const Descriptor t = made.make(Kind::tensor);
  made.set_number(t, 901, Type::data_type, data_type(dtype));
  made.set(t, 902, sizes);
  made.set(t, 903, strides);
  made.set(t, 906, Integers{id});
  made.set(t, 900, Integers{alignment});
  made.finish(t);
  return t;
}

Descriptor geometry(Descriptors& made, const ConvolutionQuestion& q) {
  constexpr int cross_correlation = 1;
  const Descriptor convolution = made.make(Kind::convolution);
  made.set_number(convolution, 100, Type::data_type,
                  q.dtype == DType::f64 ? f64 : f32);  // what it computes in
  made.set_number(convolution, 101, Type::convolution_mode, cross_correlation);
  made.set(convolution, 106, Integers{static_cast<int64_t>(q.stride.size())});
  made.set(convolution, 102, q.dilation);
  made.set(convolution, 103, q.stride);
  made.set(convolution, 105, q.padding);  // before
  made.set(convolution, 104, q.padding);  // behind
  made.finish(convolution);
  return convolution;
}

// Attributes of the three operations: geometry, x, w, y, and the factors of result and of what was there.
struct Attributes {
  PlannedOp op;
  Kind kind;
  int geometry, x, w, y, alpha, beta;
};
constexpr Attributes kOperations[] = {
    {PlannedOp::conv_fwd, Kind::forward, 702, 704, 703, 705, 700, 701},
    {PlannedOp::conv_dgrad, Kind::data_gradient, 708, 710, 709, 711, 706, 707},
    {PlannedOp::conv_wgrad, Kind::weight_gradient, 714, 716, 715, 717, 712, 713},
};

}  // namespace

Descriptor operation_graph(Descriptors& made, const ConvolutionQuestion& q, void* handle) {
  const auto* attributes = std::find_if(std::begin(kOperations), std::end(kOperations),
                                        [&](const Attributes& a) { return a.op == q.op; });
  const Descriptor operation = made.make(attributes->kind);
  made.set(operation, attributes->geometry, geometry(made, q));
  made.set(operation, attributes->x, tensor(made, q.dtype, q.x, q.x_strides, 'x'));
  made.set(operation, attributes->w, tensor(made, q.dtype, q.w, q.w_strides, 'w'));
  made.set(operation, attributes->y, tensor(made, q.dtype, output_sizes(q), q.y_strides, 'y'));
  if (q.dtype == DType::f64) {
    const double one = 1, zero = 0;
    made.set(operation, attributes->alpha, Type::real64, 1, &one);
    made.set(operation, attributes->beta, Type::real64, 1, &zero);
  } else {
    const float one = 1, zero = 0;
    made.set(operation, attributes->alpha, Type::real32, 1, &one);
    made.set(operation, attributes->beta, Type::real32, 1, &zero);
  }
  made.finish(operation);
  const Descriptor graph = made.make(Kind::graph);
  if (handle) made.set(graph, 800, Type::handle, 1, &handle);
  made.set(graph, 801, operation);
  made.finish(graph);
  return graph;
}

bool is_left_out(Descriptors& made, Descriptor configuration, const ConvolutionQuestion& q) {
  constexpr int down_converts_inputs = 1, kinds_of_notes = 10;
  const Descriptor engine = made.held(configuration, 300, Kind::engine).at(0);
  if (q.op == PlannedOp::conv_dgrad && q.x.size() == 5 && made.integer(engine, 1301) == 23) return true;
  const std::vector<int> notes = made.numbers(engine, 1303, Type::numerical_note, kinds_of_notes);
  return q.dtype == DType::f32 && std::find(notes.begin(), notes.end(), down_converts_inputs) != notes.end();
}

std::optional<int64_t> convolution_workspace(const Library& library, const std::string& question,
                                             const std::string& device, int skipped) {
  constexpr int instant = 0, fallback = 2;  // heuristic modes, in PyTorch's order
  const ConvolutionQuestion q = parse_convolution(question);
  Descriptors made(library);
  const Descriptor graph = operation_graph(made, q, nullptr), described = made.make(Kind::device);
  made.set(described, 2702, Type::character, static_cast<int64_t>(device.size()), device.data());
  made.finish(described);
  std::optional<int64_t> least;
  for (int mode : {instant, fallback}) {
    const Descriptor heuristics = made.make(Kind::heuristics);
    made.set(heuristics, 201, graph);
    made.set_number(heuristics, 200, Type::heuristic_mode, mode);
    made.set(heuristics, 204, described);
    if (!made.try_to_finish(heuristics)) continue;
    for (Descriptor configuration : made.held(heuristics, 202, Kind::engine_configuration))
      if (!is_left_out(made, configuration, q)) {
        const int64_t workspace = made.integer(configuration, 303);
        if (least && workspace >= *least) continue;
        if (skipped-- == 0) return workspace;
        least = workspace;
      }
  }
  return {};
}

}  // namespace metaprof::cudnn
