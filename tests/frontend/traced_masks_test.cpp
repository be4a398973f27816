// Attention masks that transformers makes only where it is traced (program/source/traced_masks.h), in exports as they come
// (tests/data/cudagraphs/models.py; tests/data/masks/README.md).

#include <gtest/gtest.h>

#include <algorithm>

#include "program/pt2/pt2.h"

namespace metaprof {
namespace {

Program read(const std::string& path) { return read_pt2("tests/data/" + path + ".pt2"); }

int64_t count(const Graph& graph, std::string_view op) {
  return std::ranges::count(graph.nodes, op, &GraphNode::op);
}

std::vector<GraphNode> attentions_of(const Graph& graph) {
  std::vector<GraphNode> found;
  std::ranges::copy_if(graph.nodes, std::back_inserter(found),
                       [](const GraphNode& node) { return node.op == "aten::scaled_dot_product_attention"; });
  return found;
}

bool has_mask(const GraphNode& attention) {
  const Operand* mask = attention.operand_named("attn_mask");
  return mask != nullptr && mask->value != kNoValue;
}

bool flag(const GraphNode& attention, std::string_view name) {
  const Operand* flag = attention.operand_named(name);
  return flag != nullptr && flag->constant.boolean();
}

TEST(TracedMasks, ACausalOneIsAFlagOfAttention) {
  const Program program = read("cudagraphs/models/qwen2_small");
  const std::vector<GraphNode> plain = attentions_of(program.graph);
  ASSERT_EQ(plain.size(), 2u);
  for (const GraphNode& attention : plain) {
    EXPECT_FALSE(has_mask(attention));
    EXPECT_TRUE(flag(attention, "is_causal"));
  }
  // Of what made the mask the look for packed sequences is left, and the positions themselves.
  EXPECT_EQ(count(program.graph, "aten::arange"), 1);
  EXPECT_EQ(count(program.graph, "aten::cumsum"), 1);
  EXPECT_EQ(count(program.graph, "aten::all"), 1);
  EXPECT_EQ(count(program.graph, "aten::le.Tensor"), 0);
}

TEST(TracedMasks, WithoutOneHeadsAreTakenAsTheyAre) {
  const Program program = read("cudagraphs/models/qwen2_small");
  for (const GraphNode& attention : attentions_of(program.graph)) {
    EXPECT_TRUE(flag(attention, "enable_gqa"));
    const ValueId value = attention.operands[2].value;
    EXPECT_EQ(program.graph.values[size_t(value)].tensor->sizes, (Sizes{4, 2, 64, 32}));
  }
}

TEST(TracedMasks, TheProgramThatIsTracedHasThem) {
  const Program program = read("cudagraphs/models/qwen2_small");
  ASSERT_NE(program.traced, nullptr);
  for (const GraphNode& attention : attentions_of(program.traced->graph)) {
    EXPECT_TRUE(has_mask(attention));
    EXPECT_FALSE(flag(attention, "is_causal"));
    EXPECT_FALSE(flag(attention, "enable_gqa"));
  }
  EXPECT_EQ(program.traced->inputs.size(), program.inputs.size());
}

TEST(TracedMasks, OneOfAllPositionsIsNothing) {
  const Program program = read("cudagraphs/models/albert_small");
  const std::vector<GraphNode> plain = attentions_of(program.graph);
  ASSERT_EQ(plain.size(), 3u);
  for (const GraphNode& attention : plain) {
    EXPECT_FALSE(has_mask(attention));
    EXPECT_FALSE(flag(attention, "is_causal"));
  }
  EXPECT_EQ(count(program.graph, "aten::arange"), 0);
}

TEST(TracedMasks, PaddingStaysBecauseDataDecideIt) {
  const Program program = read("masks/padded_bert");
  EXPECT_EQ(program.traced, nullptr);
  for (const GraphNode& attention : attentions_of(program.graph)) EXPECT_TRUE(has_mask(attention));
}

TEST(TracedMasks, AWindowThatIsShorterThanTheSequenceStays) {
  const Program program = read("masks/mistral_window");
  ASSERT_NE(program.traced, nullptr);
  for (const GraphNode& attention : attentions_of(program.graph)) EXPECT_TRUE(has_mask(attention));
  // The numbers of sequences are looked at, and not compared with each other.
  EXPECT_EQ(count(program.traced->graph, "aten::eq.Tensor"), 1);
  EXPECT_EQ(count(program.graph, "aten::eq.Tensor"), 0);
  EXPECT_EQ(count(program.graph, "aten::gt.Tensor"), 1);
}

TEST(TracedMasks, ModelsWithoutAreReadOnce) {
  EXPECT_EQ(read("cudagraphs/models/vit_timm_small").traced, nullptr);
}

}  // namespace
}  // namespace metaprof
