#include "program/pt2/pt2.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/formats/archive.h"
#include "meta/ops/all.h"
#include "program/pt2/advice.h"
#include "program/pt2/context.h"
#include "program/pt2/graph.h"
#include "program/pt2/layout.h"
#include "program/pt2/numbers.h"
#include "program/pt2/signature.h"
#include "program/pt2/symbols.h"
#include "program/pt2/ties.h"
#include "program/source/source.h"

namespace metaprof {
namespace {

// The schema with which this reader was checked (PyTorch 2.11).
constexpr int64_t kSchemaMajor = 8, kSchemaMinor = 17;

void check_schema_version(Json root, Pt2Context& context) {
  const Json version = root.find("schema_version");
  if (!version) return;
  const int64_t major = version.at("major").integer(), minor = version.at("minor").integer();
  if (major > kSchemaMajor)
    version.reject(fmt::format(
        "schema version {}.{} is newer than this reader, which knows {}.{}: export with PyTorch 2.11", major,
        minor, kSchemaMajor, kSchemaMinor));
  if (major < kSchemaMajor)
    context.warn(fmt::format("schema version {}.{} is older than {}.{}, with which this reader was checked",
                             major, minor, kSchemaMajor, kSchemaMinor));
  if (major == kSchemaMajor && minor > kSchemaMinor)
    context.warn(fmt::format("schema version {}.{} is newer than {}.{}, with which this reader was checked",
                             major, minor, kSchemaMajor, kSchemaMinor));
}

// The device on which the model was exported is that of its first parameter, or else of its first input.
std::optional<Device> device_of_export(Json graph, Json signature) {
  const Json entry = graph.at("tensor_values").find(find_typical_input(signature));
  if (!entry || !entry.find("device")) return std::nullopt;
  return read_device(entry.find("device"));
}

// What the flags of calls say. A module's follows its mode; a function's may be written out (`F.dropout(x, 0.5)` drops
// in any mode).
struct TrainingFlags {
  bool any = false, on = false;
  void add(bool flag) {
    any = true;
    on |= flag;
  }
};

bool is_of_a_module(const Program& program, const GraphNode& node) {
  if (node.modules < 0) return false;
  const std::vector<ModuleCall>& stack = program.module_stacks[size_t(node.modules)];
  return !stack.empty() && stack.back().type.starts_with("torch.nn.modules.");
}

// Export in training mode shows in the flags of dropout and normalization, first of all of the framework's modules; a
// program without any is taken to be in training mode.
bool is_in_training_mode(const Program& program, Json notes) {
  if (notes)
    if (const Json training = notes.find("training")) return training.boolean();
  TrainingFlags of_modules, all;
  for (const GraphNode& node : program.graph.nodes) {
    const Operator* op = standard_registry().find(node.op);
    if (!op) continue;
    for (const Operand& operand : node.operands) {
      const int at = op->schema.find(name_hash(operand.name));
      if (at < 0 || op->schema.arguments[size_t(at)].role != Role::training_flag) continue;
      if (operand.constant.kind() != Value::Kind::boolean) continue;
      all.add(operand.constant.boolean());
      if (is_of_a_module(program, node)) of_modules.add(operand.constant.boolean());
    }
  }
  const TrainingFlags& flags = of_modules.any ? of_modules : all;
  return flags.on || !flags.any;
}

// An optional JSON entry of the archive.
class SideFile {
 public:
  SideFile(const Archive& archive, const Archive::Entry* entry) {
    if (!entry) return;
    text_ = archive.read(*entry);
    document_ = std::make_unique<JsonDocument>(text_.view(), archive.path() + ": " + entry->name);
  }
  Json root() const { return document_ ? document_->root() : Json(); }

 private:
  EntryText text_;
  std::unique_ptr<JsonDocument> document_;
};

void read_program(Json root, Json weights_config, const Pt2Layout& layout, Json notes,
                  const Pt2Options& options, Pt2Context& context) {
  check_schema_version(root, context);
  if (const Json version = root.find("torch_version")) context.program.framework = version.string();
  const Json graph_module = root.at("graph_module");
  const Json graph = graph_module.at("graph"), signature = graph_module.at("signature");
  context.model_device = device_of_export(graph, signature);
  context.program.graph = read_graph(graph, context);
  read_signature(signature, context);
  if (const Json modules = graph_module.find("module_call_graph"))
    read_module_paths(modules, context.program);
  resolve_symbols(root.find("range_constraints"), options.symbols, context);
  find_ties({weights_config ? weights_config.find("config") : Json(), layout.nonempty_weights, notes},
            context);
  context.program.training = is_in_training_mode(context.program, notes);
  warn_of_traps(context);
  read_source(context.program, standard_registry(), context.model_device == Device{DeviceType::cpu});
}

}  // namespace

Program read_pt2(const std::string& path, const Pt2Options& options) {
  const Archive archive(path);
  const Pt2Layout layout = find_layout(archive, options.program);
  const EntryText text = archive.read(*layout.program);
  const JsonDocument document(text.view(), path + ": " + layout.program->name);
  const SideFile weights(archive, layout.weights_config), notes(archive, layout.notes);

  Program program;
  program.origin = path;
  program.name = std::filesystem::path(path).stem().string();
  if (layout.is_one_of_several) program.name += ":" + layout.name;
  Pt2Context context(program);
  read_program(document.root(), weights.root(), layout, notes.root(), options, context);
  return program;
}

}  // namespace metaprof
