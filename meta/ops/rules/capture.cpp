#include "meta/ops/rules/capture.h"

namespace metaprof {
namespace {

// Beside those of libraries (library.cpp), by stream.
constexpr uint32_t kSeed = uint32_t{254} << 24, kOffset = uint32_t{255} << 24;

Ref<Storage> generator_number(Session& session, std::string_view name) {
  Ref<Storage> number = session.allocate(session.device, element_size(DType::i64), Category::workspace);
  session.trace.storages[number->id].name = session.trace.intern(name);
  return number;
}

}  // namespace

void begin_capture(Session& session) {
  session.library_workspaces[kSeed | session.stream] = generator_number(session, "seed of the graph");
  session.library_workspaces[kOffset | session.stream] = generator_number(session, "offset of the graph");
}

void end_capture(Session& session) {
  session.library_workspaces.erase(kSeed | session.stream);
  session.library_workspaces.erase(kOffset | session.stream);
}

bool is_capturing(const Session& session) {
  return session.library_workspaces.contains(kSeed | session.stream);
}

}  // namespace metaprof
