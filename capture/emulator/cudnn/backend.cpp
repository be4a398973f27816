// cuDNN's backend (graph) API: descriptors keep what is set on them. The heuristics propose the engine that PyTorch takes, and as fallbacks
// those that it tries when memory runs out for that engine's workspace.

#include <algorithm>
#include <cstring>

#include "capture/emulator/cudnn/descriptor.h"
#include "capture/emulator/cudnn/plans.h"
#include "capture/emulator/machine/export.h"
#include "capture/emulator/machine/streams/work.h"

using namespace metaprof::emulator::cudnn;

namespace {

enum Status : int { done = 0, bad_parameter = 2000, not_supported = 3000, execution_failed = 5000 };

struct Descriptor {  // what a cudnnBackendDescriptor_t points to
  std::shared_ptr<Node> node;
};

// Attributes that are not kept as they were set, but answered.
enum Asked : int {
  heuristic_mode = 200,
  heuristic_results = 202,
  configuration_engine = 300,
  configuration_workspace = 303,
  configuration_shared_memory = 304,
  plan_configuration = 401,
  plan_workspace = 402,
  graph_engine_count = 802,
  engine_graph = 1300,
  engine_index = 1301,
  engine_numerical_notes = 1303,
  engine_behaviour_notes = 1305,
  heuristic_graph = 201,
};

Status give(int64_t value, int64_t room, int64_t* count, void* out) {
  if (count) *count = 1;
  if (out && room > 0) std::memcpy(out, &value, sizeof value);
  return done;
}

// An engine with this plan, put into a descriptor of the caller.
Status give_engine(const Plan& plan, int64_t room, int64_t* count, void* out) {
  if (count) *count = 1;
  if (out && room > 0) static_cast<Descriptor**>(out)[0]->node->plan = plan;
  return done;
}

// Each has less workspace than those before it: cuDNN is asked for it when its plan is made, and says then whether there is one.
constexpr int kFallbackMode = 2, kMostFallbacks = 8;

Status give_fallbacks(const Node& graph, const std::string& question, int64_t room, int64_t* count,
                      void* out) {
  if (count) *count = kMostFallbacks;
  if (!out) return done;
  Plan plan = plan_of(graph);
  plan.question = question;
  for (int64_t i = 0; i < std::min<int64_t>(room, kMostFallbacks); ++i) {
    ++plan.skipped;
    static_cast<Descriptor**>(out)[i]->node->plan = plan;
  }
  return done;
}

Status give_engines(const Node& heuristics, const Node& graph, int64_t room, int64_t* count, void* out) {
  if (heuristics.number(heuristic_mode) == kFallbackMode && plan_workspace_of(graph) > 0)
    return give_fallbacks(graph, question_about(graph), room, count, out);
  return give_engine(plan_of(graph), room, count, out);
}

// False: there is no such plan.
bool complete(Plan& plan) {
  if (plan.skipped == 0) return true;
  const std::optional<int64_t> workspace = workspace_after(plan.question, plan.skipped);
  plan.workspace = workspace.value_or(0);
  return workspace.has_value();
}

Status give_attribute(const Node& node, int name, int type, int64_t room, int64_t* count, void* out) {
  const Attribute* const a = node.find(name);
  if (count) *count = a ? a->count : 0;
  if (a && out && room > 0)
    std::memcpy(out, a->bytes.data(), std::min(a->bytes.size(), size_t(room) * size_of(type)));
  return done;
}

}  // namespace

METAPROF_CUDA Status cudnnBackendCreateDescriptor(int kind, Descriptor** out) {
  *out = new Descriptor{std::make_shared<Node>(Node{kind})};
  return done;
}
METAPROF_CUDA Status cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return done;
}

METAPROF_CUDA Status cudnnBackendSetAttribute(Descriptor* descriptor, int name, int type, int64_t count,
                                              const void* values) {
  if (!descriptor || count < 0) return bad_parameter;
  Attribute a{name, type, count, {}, {}};
  if (values) a.bytes.assign(static_cast<const char*>(values), size_t(count) * size_of(type));
  if (type == descriptors && values)
    for (int64_t i = 0; i < count; ++i) a.nodes.push_back(static_cast<Descriptor* const*>(values)[i]->node);
  auto& all = descriptor->node->attributes;
  const auto old =
      std::find_if(all.begin(), all.end(), [name](const Attribute& b) { return b.name == name; });
  if (old == all.end())
    all.push_back(std::move(a));
  else
    *old = std::move(a);
  return done;
}

METAPROF_CUDA Status cudnnBackendFinalize(Descriptor* descriptor) {
  if (!descriptor) return bad_parameter;
  Node& node = *descriptor->node;
  if (node.kind == engine && node.find(engine_index))  // an engine that the program names
    if (const Node* const graph = node.node(engine_graph)) node.plan = plan_of(*graph);
  if (node.kind == engine_configuration)
    if (const Node* const from = node.node(configuration_engine)) node.plan = from->plan;
  if (node.kind == execution_plan)
    if (const Node* const from = node.node(plan_configuration)) {
      node.plan = from->plan;
      if (!complete(node.plan)) return not_supported;
    }
  return done;
}

METAPROF_CUDA Status cudnnBackendGetAttribute(Descriptor* descriptor, int name, int type, int64_t room,
                                              int64_t* count, void* out) {
  if (!descriptor) return bad_parameter;
  const Node& node = *descriptor->node;
  switch (name) {
    case heuristic_results: {
      const Node* const graph = node.node(heuristic_graph);
      return graph ? give_engines(node, *graph, room, count, out) : bad_parameter;
    }
    case configuration_engine: return give_engine(node.plan, room, count, out);
    case configuration_workspace:
    case plan_workspace: return give(node.plan.workspace, room, count, out);
    case graph_engine_count: return give(1, room, count, out);
    case engine_index:
      return node.find(name) ? give_attribute(node, name, type, room, count, out) : give(0, room, count, out);
    case configuration_shared_memory:
      if (count) *count = 1;
      if (out && room > 0) std::memset(out, 0, 4);
      return done;
    case engine_numerical_notes:
    case engine_behaviour_notes:
      if (count) *count = 0;
      return done;
    default: return give_attribute(node, name, type, room, count, out);
  }
}

METAPROF_CUDA Status cudnnBackendExecute(void* const* handle, Descriptor* plan, Descriptor*) {
  if (!plan) return bad_parameter;
  const Plan& p = plan->node->plan;
  const int error = metaprof_emulator_work_of(*handle, p.moved, p.flops, p.element_bytes);
  return error == 0 ? done : execution_failed;  // a handle begins with its stream
}
