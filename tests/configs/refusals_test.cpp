// Configurations that describe no model: one line with the file, the key and what is expected.

#include <gtest/gtest.h>

#include "core/error.h"
#include "program/config/config_file.h"

namespace metaprof {
namespace {

std::string message_of(const std::string& text, const InputSizes& sizes = {}) {
  try {
    (void)ConfigFile(text, "model.json").program(sizes);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Config, ThatNamesNoFamilyIsRefused) {
  EXPECT_EQ(message_of("{}"),
            "model.json: model_type is missing, which says what model this is the configuration of");
  EXPECT_TRUE(
      message_of(R"({"model_type": "warpdrive"})")
          .starts_with(
              "model.json: model_type 'warpdrive' is of no family that is known (albert, bart, bert, "));
  EXPECT_EQ(message_of("[]"), "model.json: expected an object: the configuration of a model");
}

TEST(Config, ValuesThatNoModelHasAreRefused) {
  const std::string llama = R"({"model_type": "llama", )";
  EXPECT_EQ(message_of(llama + R"("num_hidden_layers": "4"})"),
            "model.json: num_hidden_layers: expected a whole number from 1 to 4096, got \"4\"");
  EXPECT_EQ(message_of(llama + R"("num_hidden_layers": 2000000000})"),
            "model.json: num_hidden_layers: expected a whole number from 1 to 4096, got 2000000000");
  EXPECT_EQ(message_of(llama + R"("hidden_size": 0.5})"),
            "model.json: hidden_size: expected a whole number from 1 to 2147483648, got 0.5");
  EXPECT_EQ(message_of(llama + R"("attention_bias": 1})"),
            "model.json: attention_bias: expected true or false, got 1");
  EXPECT_EQ(message_of(llama + R"("attention_dropout": "none"})"),
            "model.json: attention_dropout: expected a number, got \"none\"");
  EXPECT_EQ(message_of(llama + R"("hidden_size": 512, "num_attention_heads": 7})"),
            "model.json: hidden_size: 512 is no multiple of num_attention_heads 7");
  EXPECT_EQ(message_of(llama + R"("num_attention_heads": 8, "num_key_value_heads": 3})"),
            "model.json: num_key_value_heads: 8 heads cannot share 3 heads of keys and values");
  EXPECT_EQ(
      message_of(R"({"model_type": "gemma3_text", "rope_parameters": 3, "hidden_act": "cosine"})"),
      "model.json: the activation 'cosine' is not known; known are silu, swish, gelu, gelu_pytorch_tanh, "
      "gelu_new, gelu_fast, quick_gelu, relu, tanh, sigmoid");
  EXPECT_EQ(message_of(R"({"model_type": "phi", "rope_parameters": 3})"),
            "model.json: rope_parameters: expected an object");
}

TEST(Config, WindowsAreThoseOfTheLayers) {
  EXPECT_EQ(
      message_of(R"({"model_type": "qwen2", "num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"),
      "model.json: layer_types: layers have sliding attention, and use_sliding_window is false");
  // With layer_types a mistral is a ministral.
  EXPECT_EQ(
      message_of(R"({"model_type": "mistral", "num_hidden_layers": 2, "layer_types": ["full_attention"]})"),
      "model.json: layer_types: has 1 layers, and num_hidden_layers is 2");
  EXPECT_EQ(
      message_of(R"({"model_type": "ministral", "num_hidden_layers": 1, "layer_types": ["full_attention"]})"),
      "accepted");
  const std::string gemma = R"({"model_type": "gemma2", "num_hidden_layers": 2, )";
  EXPECT_EQ(message_of(gemma + R"("layer_types": ["full_attention"]})"),
            "model.json: layer_types: has 1 layers, and num_hidden_layers is 2");
  EXPECT_EQ(
      message_of(gemma + R"("layer_types": ["full_attention", "linear_attention"]})"),
      "model.json: layer_types: expected sliding_attention or full_attention, got \"linear_attention\"");
  EXPECT_EQ(message_of(gemma + R"("sliding_window": null})"),
            "model.json: sliding_window: is missing, and layers have sliding attention");
  EXPECT_EQ(message_of(gemma + R"("use_bidirectional_attention": true})"),
            "model.json: use_bidirectional_attention: attention to later tokens is not built");
  EXPECT_EQ(message_of(R"({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})"),
            "model.json: architectures: the class LlamaForSequenceClassification is not built; those of this "
            "family are "
            "LlamaForCausalLM");
}

// Attention with a window gets a mask for sequences that are not shorter (masking_utils.py), and heads of keys are then
// repeated.
TEST(Config, WindowsMakeMasksForLongSequences) {
  const std::string mistral =
      R"({"model_type": "mistral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 100, "sliding_window": 16})";
  const auto with_mask = [&](int64_t sequence) {
    const Program program = ConfigFile(mistral, "model.json").program({.batch = 2, .sequence = sequence});
    int64_t count = 0;
    for (const GraphNode& node : program.graph.nodes)
      if (node.op == "aten::scaled_dot_product_attention" &&
          node.operands.at(3).kind == Operand::Kind::value) {
        const auto& mask = program.graph.values[static_cast<size_t>(node.operands[3].value)].tensor;
        EXPECT_EQ(mask->sizes, (Sizes{2, 1, sequence, sequence}));
        EXPECT_EQ(mask->dtype, DType::b8);
        ++count;
      }
    return count;
  };
  EXPECT_EQ(with_mask(15), 0);
  EXPECT_EQ(with_mask(16), 2);
}

// Files of tests/data/configs/broken, and what their messages hold.
TEST(Config, BrokenFilesAreRefused) {
  const std::pair<const char*, const char*> kBroken[] = {{"heads_uneven", "hidden_size"},
                                                         {"heads_zero", "num_attention_heads"},
                                                         {"kv_uneven", "num_key_value_heads"},
                                                         {"layers_huge", "num_hidden_layers"},
                                                         {"layers_negative", "num_hidden_layers"},
                                                         {"layers_string", "num_hidden_layers"},
                                                         {"no_type", "model_type"},
                                                         {"syntax", "JSON"},
                                                         {"unknown_type", "model_type"}};
  for (const auto& [name, words] : kBroken) {
    const std::string file = "tests/data/configs/broken/hf_" + std::string(name) + ".config.json";
    try {
      (void)ConfigFile(file).program({});
      FAIL() << file << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(file + ": ")) << message;
      EXPECT_NE(message.find(words), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

TEST(Config, InputsThatTheModelDoesNotHaveAreRefused) {
  const std::string gpt2 = R"({"model_type": "gpt2", "n_layer": 1})";
  EXPECT_EQ(message_of(gpt2, {.batch = 2, .sequence = 8, .inputs = {{"pixels", {1}}}}),
            "the model has no input 'pixels'; it has input_ids, labels");
  EXPECT_EQ(message_of(gpt2, {.batch = 2, .sequence = 8, .inputs = {{"input_ids", {8}}}}),
            "input input_ids has 2 dimensions, as [2,8]; got [8]");
  EXPECT_EQ(message_of(gpt2, {.batch = 2, .sequence = 8, .inputs = {{"input_ids", {3, 4}}}}), "accepted");
}

}  // namespace
}  // namespace metaprof
