#pragma once
// Recurrent networks: geometry of their weights, as cuDNN lays them out in one buffer.

#include "meta/session/call.h"

namespace metaprof {

/// Numbers are cudnnRNNMode_t's.
enum class RecurrentMode : uint8_t { relu = 0, tanh = 1, lstm = 2, gru = 3 };

struct RecurrentShape {
  RecurrentMode mode;
  int64_t input = 0, hidden = 0, projected = 0;  ///< projected: 0 if the output is the hidden state itself
  int64_t layers = 1;
  bool bidirectional = false;

  int64_t gates() const { return mode == RecurrentMode::lstm ? 4 : mode == RecurrentMode::gru ? 3 : 1; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t output() const { return projected ? projected : hidden; }
};

/// Where the weights of each layer and direction lie in the flat buffer, in elements: all matrices, then all
/// biases, which are there even if the module has none.
struct FlatWeights {
  struct Layer {
    int64_t input_matrix = 0, hidden_matrix = 0, projection = 0, input_bias = 0, hidden_bias = 0;
  };
  std::vector<Layer> layers;  ///< layer by layer, forward direction before the other
  int64_t elements = 0;
};
FlatWeights flat_weights(const RecurrentShape& shape);

/// Moves the weights of a recurrent module into one buffer, as `module.to("cuda")` does
/// (torch.nn.RNNBase.flatten_parameters): afterwards each looks into the buffer. `weights` as lstm and the others take
/// them.
void flatten_recurrent_weights(Session& session, RecurrentMode mode, std::span<const Tensor> weights,
                               bool biases, int64_t layers, bool bidirectional);

}  // namespace metaprof
