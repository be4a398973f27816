#pragma once
// The families of models that are known: for each `model_type` a function that writes down the training step of
// the model that the configuration describes, with inputs of the given sizes. Errors: values that no model has.

#include <string>

#include "program/config/layers/blocks.h"
#include "program/config/layers/config.h"
#include "program/nn/recorder.h"

namespace metaprof::configs {

struct ConfigModel {
  Config config;
  std::string name;  ///< of the model, for reports
  InputSizes sizes;

  int64_t batch() const { return sizes.batch.value_or(1); }
  /// What was asked for, or the usual length, if the model has that many positions.
  int64_t sequence(int64_t most_positions) const;
  /// The name of the class that the configuration was made with, or of the usual one of the family.
  std::string architecture(std::string_view usual) const;
  /// Errors: the class is none of those that are built, which the message lists.
  [[noreturn]] void reject_architecture(std::string_view built) const;
  /// How many labels a classifier has (configuration_utils.py).
  int64_t labels() const;
};

/// The recorder of a model, whose inputs have the sizes that were asked for.
class ModelRecorder {
 public:
  explicit ModelRecorder(const ConfigModel& model) : ModelRecorder(model.name, model.sizes) {}
  ModelRecorder(std::string name, InputSizes sizes) : recorder_(std::move(name)), sizes_(std::move(sizes)) {}

  Place root() const { return recorder_.root(); }
  /// Whether sizes were given for an input: those that are not always there are there then.
  bool is_given(const std::string& name) const { return sizes_.inputs.contains(name); }
  /// `usual`: sizes that nobody has changed. Errors: another number of dimensions.
  Tensor input(const std::string& name, DType dtype, const Sizes& usual);
  void warn(std::string warning) const { recorder_.warn(std::move(warning)); }
  /// Errors: sizes were given for an input that the model does not have.
  Program finish(Tensor loss) const;
  /// The same with the loss of a causal language model that was asked for.
  Program finish_language_model(const Tensor& logits, const Tensor& labels) const;
  /// A program without a loss, which gives logits and what each layer keeps for the next call: two tensors.
  Program finish_cached(const Tensor& logits, const std::vector<Tensor>& kept) const;

 private:
  void check_names() const;
  Program finished(Tensor loss) const;

  nn::Recorder recorder_;
  InputSizes sizes_;
  std::vector<std::string> names_;
};

/// The step of a language model: token ids and labels in, a loss out. Model: made of a Place and the arguments,
/// token ids → logits [batch, positions, vocabulary]. `finish`: of ModelRecorder, with logits and labels.
template <class Model, class Finish, class... Arguments>
Program token_model_program(const ConfigModel& model, int64_t most_positions, const Finish& finish,
                            const Arguments&... arguments) {
  ModelRecorder recorder(model);
  const Sizes usual{model.batch(), model.sequence(most_positions)};
  const Tensor ids = recorder.input("input_ids", DType::i64, usual);
  const Tensor labels = recorder.input("labels", DType::i64, ids.sizes());
  Model made(recorder.root(), arguments...);
  const Tensor logits = made(ids);
  return finish(recorder, logits, labels);
}

/// Of one that predicts tokens that are masked.
template <class Model, class... Arguments>
Program language_model_program(const ConfigModel& model, int64_t most_positions,
                               const Arguments&... arguments) {
  const auto finish = [](const ModelRecorder& recorder, const Tensor& logits, const Tensor& labels) {
    return recorder.finish(token_loss(logits, labels));
  };
  return token_model_program<Model>(model, most_positions, finish, arguments...);
}

/// Of one that predicts the next token: it has the loss that was asked for.
template <class Model, class... Arguments>
Program causal_language_model_program(const ConfigModel& model, int64_t most_positions,
                                      const Arguments&... arguments) {
  const auto finish = [](const ModelRecorder& recorder, const Tensor& logits, const Tensor& labels) {
    return recorder.finish_language_model(logits, labels);
  };
  return token_model_program<Model>(model, most_positions, finish, arguments...);
}

/// The same for a classifier of sequences. Model: token ids → logits [batch, labels].
template <class Model, class... Arguments>
Program sequence_classifier_program(const ConfigModel& model, int64_t most_positions,
                                    const Arguments&... arguments) {
  ModelRecorder recorder(model);
  const Sizes usual{model.batch(), model.sequence(most_positions)};
  const Tensor ids = recorder.input("input_ids", DType::i64, usual);
  const Tensor labels = recorder.input("labels", DType::i64, {ids.size(0)});
  Model made(recorder.root(), arguments...);
  const Tensor logits = made(ids);
  return recorder.finish(nn::cross_entropy(logits, labels));
}

/// The same for a model without a head, whose step has the means of its outputs as the loss. Model: token ids →
/// outputs.
template <class Model, class... Arguments>
Program feature_program(const ConfigModel& model, int64_t most_positions, const Arguments&... arguments) {
  ModelRecorder recorder(model);
  const Sizes usual{model.batch(), model.sequence(most_positions)};
  const Tensor ids = recorder.input("input_ids", DType::i64, usual);
  Model made(recorder.root(), arguments...);
  const std::vector<Tensor> outputs = made(ids);
  return recorder.finish(sum_of_means(outputs));
}

Program llama_program(const ConfigModel& model);
Program mistral_program(const ConfigModel& model);
Program ministral_program(const ConfigModel& model);
Program qwen2_program(const ConfigModel& model);
Program qwen3_program(const ConfigModel& model);
Program gemma_program(const ConfigModel& model);
Program gemma2_program(const ConfigModel& model);
Program gemma3_program(const ConfigModel& model);
Program gemma3_text_program(const ConfigModel& model);
Program phi3_program(const ConfigModel& model);
Program olmo2_program(const ConfigModel& model);
Program starcoder2_program(const ConfigModel& model);
Program phi_program(const ConfigModel& model);
Program gpt2_program(const ConfigModel& model);
Program gpt_neo_program(const ConfigModel& model);
Program gpt_neox_program(const ConfigModel& model);
Program opt_program(const ConfigModel& model);
Program bloom_program(const ConfigModel& model);
Program bert_program(const ConfigModel& model);
Program roberta_program(const ConfigModel& model);
Program electra_program(const ConfigModel& model);
Program distilbert_program(const ConfigModel& model);
Program albert_program(const ConfigModel& model);
Program vit_program(const ConfigModel& model);
Program dinov2_program(const ConfigModel& model);
Program clip_program(const ConfigModel& model);
Program siglip_program(const ConfigModel& model);
Program t5_program(const ConfigModel& model);
Program whisper_program(const ConfigModel& model);
Program bart_program(const ConfigModel& model);
Program mixtral_program(const ConfigModel& model);
Program qwen3_moe_program(const ConfigModel& model);
Program gpt_oss_program(const ConfigModel& model);
Program deepseek_v2_program(const ConfigModel& model);
Program deepseek_v3_program(const ConfigModel& model);

}  // namespace metaprof::configs
