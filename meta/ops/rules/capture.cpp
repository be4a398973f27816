#include "meta/ops/rules/capture.h"

#include "meta/ops/rules/library.h"

namespace metaprof {
namespace {

Ref<Storage> generator_number(Session& session, std::string_view name) {
  Ref<Storage> number = session.allocate(session.device, element_size(DType::i64), Category::workspace);
  session.trace.storages[number->id].name = session.trace.intern(name);
  return number;
}

}  // namespace

GraphGenerator make_graph_generator(Session& session) {
  GraphGenerator made;
  made.seed = generator_number(session, "seed of the graph");
  made.offset = generator_number(session, "offset of the graph");
  return made;
}

StreamCapture::StreamCapture(Session& session, const GraphGenerator& generator)
    : session_(session), stream_(session.stream) {
  graph_seed(session) = generator.seed;
  graph_offset(session) = generator.offset;
}

StreamCapture::~StreamCapture() {
  const Scoped<uint16_t> on_stream(session_.stream, stream_);
  graph_seed(session_).reset();
  graph_offset(session_).reset();
}

bool is_capturing(Session& session) { return static_cast<bool>(graph_seed(session)); }

}  // namespace metaprof
