#pragma once
// The question that most people come with: which card does this model need?

#include <optional>
#include <string>
#include <string_view>

#include "estimate/parallel.h"
#include "estimate/prepare/model.h"
#include "estimate/results/search/rent.h"

namespace metaprof {

struct RentOptions {
  std::string devices = "all";  ///< names between commas
  int64_t context = 8192;       ///< tokens that are generated from and to
  std::optional<int> sequence;  ///< of training; nothing: 2048, or what the model has positions for
  std::string precision;        ///< empty: that in which the weights are published
  std::string optimizer = "adamw";
  std::string lora = "r=8";                 ///< adapters of LoRA and QLoRA
  std::string base_weights = "nf4-double";  ///< of QLoRA
  std::string loss = "transformers";        ///< of training, where the model's class has one; else plain
  std::string framework;                    ///< empty: the newest that is known
  std::string margin = "0%";
};

/// "8192", "32k" (32,768), "1M". Errors: anything else.
int64_t parse_tokens(std::string_view text);

/// Errors: the model has no configuration (other sizes would need another export); no such device.
RentReport rent(const Model& model, const RentOptions& options, const OnProgress& progress = {});

}  // namespace metaprof
