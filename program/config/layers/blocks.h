#pragma once
// What models of several families are made of, as transformers 5.17 writes it.

#include <functional>
#include <memory>
#include <utility>

#include "program/nn/layers.h"

namespace metaprof::configs {

using nn::Place;
using nn::Tensor;

/// A module whose class only its maker knows, behind a function that keeps it.
using AnyPart = std::function<Tensor(Tensor)>;

template <class Part, class... Arguments>
AnyPart part(Arguments&&... arguments) {
  return [made = std::make_shared<Part>(std::forward<Arguments>(arguments)...)](Tensor x) {
    return (*made)(std::move(x));
  };
}

/// Where a family's classes live, for the types of modules: {"llama", "Llama"} and "MLP" is
/// "transformers.models.llama.modeling_llama.LlamaMLP".
struct FamilyName {
  std::string module, prefix;
  std::string type(std::string_view suffix) const;
};

/// transformers.activations, by the name that configurations give (ACT2FN).
struct Activation : nn::Module<Activation> {
  /// Errors: there is no such activation. `where` begins the message.
  Activation(const Place& place, const std::string& name, const std::string& where);
  Tensor forward(Tensor x) const;
  Tensor (*function)(Tensor);
};

/// Root mean square over the last dimension, in 32 bits. The families order the last steps differently.
struct RmsNorm : nn::Module<RmsNorm> {
  enum class Kind : uint8_t {
    scaled_after,   ///< weight · x.to(input's dtype): llama, t5
    scaled_before,  ///< (weight · x).to(input's dtype): olmo2, gpt_oss
    one_plus        ///< (x · (1 + weight)).to(input's dtype): gemma
  };
  RmsNorm(const Place& place, std::string type, int64_t width, double epsilon,
          Kind kind = Kind::scaled_after);
  Tensor forward(Tensor x) const;
  Tensor weight;
  double epsilon;
  Kind kind;
};

using Rotation = std::pair<Tensor, Tensor>;  ///< cosines and sines, [1, positions, width]

/// A table of rotary positions. Frequencies are buffers, and kept twice, as changing them needs the first ones.
struct RotaryEmbedding : nn::Module<RotaryEmbedding> {
  /// `width`: how much of a head is rotated. `names`: of the tables, "" for the only one.
  RotaryEmbedding(const Place& place, std::string type, int64_t width,
                  const std::vector<std::string>& names = {""});
  /// `x`: whose dtype the table gets. `table`: index into the names.
  Rotation forward(Tensor x, Tensor positions, size_t table = 0) const;
  std::vector<Tensor> frequencies;
  bool doubled = true;        ///< each angle stands twice
  bool keeps_32bits = false;  ///< the table is not converted to the dtype of x
  /// One table of complex numbers, c64[1, positions, width/2], in place of cosines and sines.
  bool complex = false;
};

/// The halves change places, the second one with a minus: [..., width] → the same.
Tensor rotate_half(Tensor x);
/// Queries and keys [batch, heads, positions, width] turned by their positions. Only the first part of each head
/// that the table is wide for, if that is less. `converts`: the table has 32 bits, and the results are given the
/// dtypes of queries and keys.
Rotation rotated(Tensor query, Tensor key, Tensor cosines, Tensor sines, bool converts = false);

/// positions 0 … length-1 as i64[1, length]
Tensor positions_of(const nn::AnyModule& module, int64_t length);

/// [batch, positions, heads · width] → [batch, heads, positions, width]
Tensor split_heads(Tensor x, int64_t width);

/// transformers' sdpa_attention_forward: [batch, heads, positions, width] → [batch, positions, heads, width],
/// contiguous.
Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const nn::Attention& attention);

/// The mean of all elements of each, added.
Tensor sum_of_means(const std::vector<Tensor>& outputs);

/// Cross-entropy of token logits [batch, positions, classes] with labels [batch, positions], taken as they are.
Tensor token_loss(const Tensor& logits, const Tensor& labels);
/// The same as a causal language model of transformers computes it where it is given labels: of a 32-bit copy of the logits,
/// and with the labels of the next tokens (loss/loss_utils.py, ForCausalLMLoss).
Tensor next_token_loss(const Tensor& logits, const Tensor& labels);

}  // namespace metaprof::configs
