#pragma once
// Parts of encoders as bert's, for the families that have them.

#include <optional>

#include "program/config/families.h"
#include "program/config/layers/blocks.h"

namespace metaprof::configs {

struct BertPlan {
  FamilyName name;
  int64_t vocabulary, positions, types, embedded, hidden, inner, layers, heads, padding, labels;
  double epsilon, dropout, attention_dropout, classifier_dropout;
  bool tied;
  std::string activation, where;

  int64_t width() const { return hidden / heads; }
};

/// What bert, roberta, electra and albert read alike.
BertPlan bert_plan(const ConfigModel& model, FamilyName name);

/// Token ids → [batch, positions, embedded].
struct BertEmbeddings : nn::Module<BertEmbeddings> {
  BertEmbeddings(const Place& place, const BertPlan& plan);
  Tensor forward(Tensor ids);
  Tensor positions_of_tokens(const Tensor& ids);

  nn::Embedding word_embeddings;
  std::optional<nn::Embedding> position_embeddings, token_type_embeddings;
  std::optional<nn::LayerNorm> norm;
  std::optional<nn::Dropout> dropout;
  Tensor position_ids, token_type_ids;
  int64_t padding;
  bool counted;  ///< positions are those of tokens that are no padding (roberta)
};

struct BertIntermediate : nn::Module<BertIntermediate> {
  BertIntermediate(const Place& place, const BertPlan& plan)
      : Module(place, plan.name.type("Intermediate")),
        dense(child("dense"), plan.hidden, plan.inner),
        intermediate_act_fn(child("intermediate_act_fn"), plan.activation, plan.where) {}

  Tensor forward(Tensor hidden) {
    hidden = dense(hidden);
    return intermediate_act_fn(hidden);
  }

  nn::Linear dense;
  Activation intermediate_act_fn;
};

/// The whole head of one linear layer whose weight may be the embedding's, and whose bias may be another's.
nn::Linear tied_decoder(const Place& place, const BertPlan& plan, const Tensor& embedding,
                        const Tensor& bias);

}  // namespace metaprof::configs
