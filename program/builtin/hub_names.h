#pragma once
// Names of the Hub whose models have the sizes of one that is built in: tuned versions, and those that are named otherwise there.

#include <string_view>

namespace metaprof {

struct HubName {
  std::string_view hub;   ///< in lower case, without the owner: "llama-3.1-8b-instruct"
  std::string_view name;  ///< that of the built-in model
};

inline constexpr HubName kHubNames[] = {
    {"all-minilm-l6-v2", "minilm-l6-v2"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
    {"deepseek-r1", "deepseek-v3"},
    {"deepseek-r1-0528", "deepseek-v3"},
    {"deepseek-r1-0528-qwen3-8b", "qwen3-8b"},
    {"deepseek-r1-distill-llama-70b", "llama-3.1-70b"},
    {"deepseek-r1-distill-llama-8b", "llama-3.1-8b"},
    {"deepseek-v2-lite-chat", "deepseek-v2-lite"},
    {"deepseek-v3-0324", "deepseek-v3"},
    {"distilbert-base-uncased", "distilbert-base"},
    {"electra-small-discriminator", "electra-small"},
    {"gemma-2-2b", "gemma2-2b"},
    {"gemma-2-2b-it", "gemma2-2b"},
    {"gemma-2b-it", "gemma-2b"},
    {"gemma-3-1b-it", "gemma3-1b"},
    {"gemma-3-1b-pt", "gemma3-1b"},
    {"gemma-3-4b-it", "gemma3-4b"},
    {"gemma-3-4b-pt", "gemma3-4b"},
    {"llama-2-7b-chat-hf", "llama-2-7b"},
    {"llama-2-7b-hf", "llama-2-7b"},
    {"llama-3.1-70b-instruct", "llama-3.1-70b"},
    {"llama-3.1-8b-instruct", "llama-3.1-8b"},
    {"llama-3.2-1b-instruct", "llama-3.2-1b"},
    {"llama-3.2-3b-instruct", "llama-3.2-3b"},
    {"llama-3.3-70b-instruct", "llama-3.1-70b"},
    {"meta-llama-3.1-70b", "llama-3.1-70b"},
    {"meta-llama-3.1-70b-instruct", "llama-3.1-70b"},
    {"meta-llama-3.1-8b", "llama-3.1-8b"},
    {"meta-llama-3.1-8b-instruct", "llama-3.1-8b"},
    {"mistral-7b-instruct-v0.1", "mistral-7b"},
    {"mistral-7b-v0.1", "mistral-7b"},
    {"mixtral-8x7b-instruct-v0.1", "mixtral-8x7b"},
    {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
    {"olmo-2-1124-7b", "olmo2-7b"},
    {"olmo-2-1124-7b-instruct", "olmo2-7b"},
    {"phi-3-mini-4k-instruct", "phi-3-mini"},
    {"qwen2-0.5b-instruct", "qwen2-0.5b"},
    {"qwen2-7b-instruct", "qwen2-7b"},
    {"qwen2.5-0.5b", "qwen2-0.5b"},
    {"qwen2.5-0.5b-instruct", "qwen2-0.5b"},
    {"qwen2.5-7b", "qwen2-7b"},
    {"qwen2.5-7b-instruct", "qwen2-7b"},
    {"qwen3-0.6b-base", "qwen3-0.6b"},
    {"qwen3-30b-a3b-base", "qwen3-30b-a3b"},
    {"qwen3-4b-base", "qwen3-4b"},
    {"qwen3-8b-base", "qwen3-8b"},
    {"tinyllama-1.1b-chat-v1.0", "tinyllama-1.1b"},
};

}  // namespace metaprof
