// What layers are handed and do not read, as nodes of an export's program.

#include <gtest/gtest.h>

#include "program/pt2/pt2.h"

namespace metaprof {
namespace {

// "%value in MODULE" per node that keeps something.
std::vector<std::string> kept_in(const std::string& path) {
  const Program program = read_pt2(path);
  std::vector<std::string> lines;
  for (const GraphNode& node : program.graph.nodes)
    if (node.op == "step::keep")
      lines.push_back("%" + program.graph.values[size_t(node.operands[0].values[0])].name + " in " +
                      program.module_stacks[size_t(node.modules)].back().path);
  return lines;
}

// position_ids = torch.arange(…) + past_seen_tokens; position_ids = position_ids.unsqueeze(0); then four times
// decoder_layer(hidden_states, …, position_ids=position_ids, position_embeddings=…), which hands them to its attention; that reads
// the embeddings alone.
TEST(HandedPositions, PositionsOfDecoderLayersWithRotaryEmbeddings) {
  std::vector<std::string> expected;
  for (const std::string layer : {"0", "1", "2", "3"}) {
    expected.push_back("%unsqueeze in model.model.layers." + layer);
    expected.push_back(expected.back() + ".self_attn");
  }
  EXPECT_EQ(kept_in("tests/data/models/tiny_llama.pt2"), expected);
}

// gpt2's blocks are handed them, too; but an embedding of the positions has saved them.
TEST(HandedPositions, NothingElsewhere) {
  EXPECT_TRUE(kept_in("tests/data/models/gpt2.pt2").empty());
  EXPECT_TRUE(kept_in("tests/data/models/resnet18.pt2").empty());
}

}  // namespace
}  // namespace metaprof
