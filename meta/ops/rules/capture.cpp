#include "meta/ops/rules/capture.h"

#include <algorithm>

#include "meta/ops/rules/library.h"
#include "meta/platform/platform.h"
#include "meta/session/call.h"

namespace metaprof {
namespace {

constexpr size_t kRecord = static_cast<size_t>(Layer::record);

Ref<Storage> generator_number(Session& session, std::string_view name) {
  Ref<Storage> number = session.allocate(session.device, element_size(DType::i64), Category::workspace);
  session.trace.storages[number->id].name = session.trace.intern(name);
  return number;
}

void allocate_numbers(Session& session, GraphGenerator& generator) {
  generator.seed = generator_number(session, "seed of the graph");
  generator.offset = generator_number(session, "offset of the graph");
}

// Attention without dropout draws none; recurrent networks have a random state of cuDNN's (dropout_state).
bool draws_random_numbers(const Call& call) {
  const Op& record = call.op.record;
  if (!record.facts.random || record.meta.composite) return false;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.op.schema.arguments[i];
    if (argument.name == "dropout_state") return false;
    if (argument.role == Role::dropout_probability && call.arguments[i].real() == 0) return false;
  }
  return true;
}

// The layer "record" while a graph is captured.
void captured_record_layer(Call& call) {
  Session& session = call.session;
  if (draws_random_numbers(call) && !graph_seed(session)) {
    const Scoped<uint16_t> on_default_stream(session.stream, 0);
    GraphGenerator made;
    allocate_numbers(session, made);
    graph_seed(session) = std::move(made.seed);
    graph_offset(session) = std::move(made.offset);
  }
  record_layer(call);
}

}  // namespace

GraphGenerator make_graph_generator(Session& session) {
  GraphGenerator made;
  if (!session.platform.framework.makes_graph_seed_on_first_use) allocate_numbers(session, made);
  return made;
}

StreamCapture::StreamCapture(Session& session, GraphGenerator& generator)
    : session_(session), generator_(generator), before_(session.layers[kRecord]) {
  graph_seed(session) = generator.seed;
  graph_offset(session) = generator.offset;
  session.layers[kRecord] = captured_record_layer;
}

StreamCapture::~StreamCapture() {
  session_.layers[kRecord] = before_;
  generator_.seed = std::move(graph_seed(session_));
  generator_.offset = std::move(graph_offset(session_));
}

bool is_capturing(const Session& session) { return session.layers[kRecord] == captured_record_layer; }

}  // namespace metaprof
