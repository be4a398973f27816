#include "meta/source/source.h"

#include "meta/source/conversions.h"
#include "meta/source/dtypes.h"
#include "meta/source/even_shares.h"
#include "meta/source/frames.h"
#include "meta/source/host_constants.h"
#include "meta/source/lifetimes.h"

namespace metaprof {
namespace {

class SourceReader {
 public:
  SourceReader(Program& program, const Registry& registry)
      : program_(program), registry_(registry), frames_(program) {}

  void read(Graph& graph) {
    const SourceFrames frames = frames_.frames_of(graph);
    undo_conversions(graph, frames, registry_);
    find_named_dtypes(program_, graph);
    find_products_without_autocast(graph, registry_);
    find_dtype_sources(program_, graph, frames);
    find_drops(graph, frames, registry_);
    for (GraphNode& node : graph.nodes)
      for (Operand& operand : node.operands) {
        if (!operand.graph) continue;
        auto inner = std::make_shared<Graph>(*operand.graph);
        read(*inner);
        operand.graph = std::move(inner);
      }
  }

 private:
  const Program& program_;
  const Registry& registry_;
  const FrameFinder frames_;
};

}  // namespace

void read_source(Program& program, const Registry& registry) {
  SourceReader(program, registry).read(program.graph);
  find_host_constants(program, registry);
  assume_even_shares(program, registry);
}

}  // namespace metaprof
