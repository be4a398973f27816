#include "meta/ops/recurrent/recurrent_space.h"

#include "core/rounding.h"
#include "meta/ops/rules/cudnn_sizes.h"

namespace metaprof {
namespace {

// Values that a layer keeps of each hidden unit and step: gates and cell state; of a GRU also products that its gates
// share; of the others the output.
int64_t kept_values(RecurrentMode mode) {
  return mode == RecurrentMode::lstm ? 5 : mode == RecurrentMode::gru ? 6 : 1;
}

int64_t reserve_bytes(const RecurrentShape& shape, int64_t rows, DType dtype, bool drops_out) {
  constexpr int64_t header = 256, alignment = 32;
  const int64_t width = shape.output() * shape.directions(), between = (shape.layers - 1) * rows * width;
  const int64_t projected = shape.projected * shape.directions() * shape.layers;
  const int64_t layers =
      kept_values(shape.mode) * shape.hidden * shape.directions() * shape.layers + projected;
  const int64_t masks = drops_out ? between / 8 : 0;  // a bit for each value between layers
  return align_up((rows * layers + between) * element_size(dtype) + masks, alignment) + header;
}

// A workspace of cuBLAS for each layer and direction, the weights in another order, and for each step the input of a
// layer twice and its gates and output.
int64_t workspace_bytes(const RecurrentShape& shape, int64_t rows, DType dtype) {
  constexpr int64_t of_cublas = 8 << 20;
  const int64_t biases = 2 * shape.gates() * shape.hidden * shape.layers * shape.directions();
  int64_t elements = flat_weights(shape).elements - biases;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    const int64_t input = layer == 0 ? shape.input : shape.output() * shape.directions();
    elements += rows * (2 * input + shape.directions() * (shape.gates() + 1) * shape.hidden);
  }
  return of_cublas * shape.layers * shape.directions() + elements * element_size(dtype);
}

}  // namespace

RecurrentSpace recurrent_space(const Session& session, const RecurrentShape& shape, int64_t rows, DType dtype,
                               bool drops_out) {
  if (counts_sizes_of_cudnn(session))
    return {workspace_bytes(shape, rows, dtype), reserve_bytes(shape, rows, dtype, drops_out)};
  const int64_t cells = rows * shape.hidden * shape.layers * shape.directions() * element_size(dtype);
  return {cells * shape.gates(), cells * (shape.gates() + 2)};
}

}  // namespace metaprof
