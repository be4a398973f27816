// Recurrent networks of cuDNN: how their weights lie in one buffer (all matrices, then all biases), and how much workspace
// and reserve they take, which only the library knows: estimates.

#include <cstddef>
#include <cstdint>

#include "capture/emulator/cudnn/dropout.h"
#include "capture/emulator/cudnn/tensors.h"
#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/export.h"

using namespace metaprof::emulator::cudnn;

namespace {

struct Rnn {
  int gates = 1, directions = 1, input = 0, hidden = 0, projection = 0, layers = 0, type = float_type;
  bool bias = false, drops_out = false;

  size_t element() const {
    return type == double_type ? 8 : type == half_type || type == bfloat16_type ? 2 : 4;
  }
  int output() const { return projection ? projection : hidden; }
};

struct RnnData {
  int steps = 0, batch = 0;
};

struct Part {
  size_t offset = 0;  ///< in elements
  int rows = 0, columns = 0;
};

// A matrix of a layer (of one direction): 0 to gates-1 work on the input, gates to 2*gates-1 on the hidden state, 2*gates is
// the projection. No rows: there is none; `offset` is then the end of all layers up to this one.
Part matrix(const Rnn& r, int layer, int id) {
  size_t offset = 0;
  for (int l = 0; l <= layer; ++l) {
    const int input = l / r.directions == 0 ? r.input : r.output() * r.directions;
    for (int gate = 0; gate < 2 * r.gates; ++gate) {
      const int columns = gate < r.gates ? input : r.output();
      if (l == layer && gate == id) return {offset, r.hidden, columns};
      offset += size_t(r.hidden) * size_t(columns);
    }
    if (r.projection) {
      if (l == layer && id == 2 * r.gates) return {offset, r.projection, r.hidden};
      offset += size_t(r.projection) * size_t(r.hidden);
    }
  }
  return {offset, 0, 0};
}

size_t all_matrices(const Rnn& r) { return matrix(r, r.layers * r.directions - 1, -1).offset; }

size_t all_weights(const Rnn& r) {
  return all_matrices(r) +
         (r.bias ? size_t(r.layers) * size_t(r.directions) * 2 * size_t(r.gates) * size_t(r.hidden) : 0);
}

}  // namespace

METAPROF_CUDA int cudnnCreateRNNDescriptor(Rnn** out) {
  *out = new Rnn;
  return 0;
}
METAPROF_CUDA int cudnnDestroyRNNDescriptor(Rnn* rnn) {
  delete rnn;
  return 0;
}
METAPROF_CUDA int cudnnSetRNNDescriptor_v8(Rnn* rnn, int, int mode, int bias, int direction, int, int type,
                                           int, int, int input, int hidden, int projection, int layers,
                                           const Dropout* dropout, unsigned) {
  constexpr int lstm = 2, gru = 3, bidirectional = 1, no_bias = 0;
  *rnn = {mode == lstm  ? 4
          : mode == gru ? 3
                        : 1,
          direction == bidirectional ? 2 : 1,
          input,
          hidden,
          projection == hidden ? 0 : projection,
          layers,
          type,
          bias != no_bias,
          dropout && dropout->rate > 0};
  return 0;
}
METAPROF_CUDA int cudnnCreateRNNDataDescriptor(RnnData** out) {
  *out = new RnnData;
  return 0;
}
METAPROF_CUDA int cudnnDestroyRNNDataDescriptor(RnnData* data) {
  delete data;
  return 0;
}
METAPROF_CUDA int cudnnSetRNNDataDescriptor(RnnData* data, int, int, int steps, int batch, int, const int*,
                                            void*) {
  *data = {steps, batch};
  return 0;
}

METAPROF_CUDA int cudnnGetRNNWeightSpaceSize(void*, const Rnn* rnn, size_t* bytes) {
  *bytes = all_weights(*rnn) * rnn->element();
  return 0;
}

METAPROF_CUDA int cudnnGetRNNWeightParams(void*, const Rnn* rnn, int layer, size_t, char* space, int id,
                                          Tensor* matrix_out, void** matrix_at, Tensor* bias_out,
                                          void** bias_at) {
  const Part part = matrix(*rnn, layer, id);
  // A caller asks for the matrix or for the bias and leaves the other out.
  if (matrix_at) *matrix_at = nullptr;
  if (bias_at) *bias_at = nullptr;
  if (matrix_out) *matrix_out = {rnn->type};
  if (bias_out) *bias_out = {rnn->type};
  if (part.rows == 0) return 0;
  if (matrix_out && matrix_at) {
    *matrix_out = {rnn->type, {1, part.rows, part.columns}, {part.rows * part.columns, part.columns, 1}};
    *matrix_at = space + part.offset * rnn->element();
  }
  if (bias_out && bias_at && rnn->bias && id < 2 * rnn->gates) {
    const size_t biases_before = size_t(layer) * 2 * size_t(rnn->gates) + size_t(id);
    *bias_out = {rnn->type, {1, rnn->hidden, 1}, {rnn->hidden, 1, 1}};
    *bias_at = space + (all_matrices(*rnn) + biases_before * size_t(rnn->hidden)) * rnn->element();
  }
  return 0;
}

namespace {

// The rules of meta/ops/recurrent/recurrent_cudnn.cpp.
size_t reserve_bytes(const Rnn& r, size_t rows) {
  constexpr size_t header = 256, alignment = 32;
  const size_t kept = r.gates == 4   ? 5
                      : r.gates == 3 ? 6
                                     : 1,
               units = size_t(r.directions) * size_t(r.layers);
  const size_t between = size_t(r.layers - 1) * rows * size_t(r.output() * r.directions);
  const size_t layers = (kept * size_t(r.hidden) + size_t(r.projection)) * units;
  const size_t bytes = (rows * layers + between) * r.element() + (r.drops_out ? between / 8 : 0);
  return (bytes + alignment - 1) / alignment * alignment + header;
}
size_t workspace_bytes(const Rnn& r, size_t rows) {
  constexpr size_t of_cublas = 8 << 20;
  size_t elements = all_matrices(r);
  for (int layer = 0; layer < r.layers; ++layer) {
    const size_t input = size_t(layer == 0 ? r.input : r.output() * r.directions);
    elements += rows * (2 * input + size_t(r.directions * (r.gates + 1) * r.hidden));
  }
  return of_cublas * size_t(r.layers * r.directions) + elements * r.element();
}

}  // namespace

METAPROF_CUDA int cudnnGetRNNTempSpaceSizes(void*, const Rnn* rnn, int mode, const RnnData* x,
                                            size_t* workspace, size_t* reserve) {
  constexpr int training = 1;
  const size_t rows = size_t(x->steps) * size_t(x->batch);
  const bool by_library = !metaprof::emulator::environment().cudnn.empty();
  // Otherwise as in the recordings: every gate of every step; what the backward needs of it, and two more.
  const size_t cells =
      rows * size_t(rnn->hidden) * size_t(rnn->layers) * size_t(rnn->directions) * rnn->element();
  if (workspace) *workspace = by_library ? workspace_bytes(*rnn, rows) : cells * size_t(rnn->gates);
  const size_t kept = by_library ? reserve_bytes(*rnn, rows) : cells * size_t(rnn->gates + 2);
  if (reserve) *reserve = mode == training ? kept : 0;
  return 0;
}
