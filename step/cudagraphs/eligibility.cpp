#include "step/cudagraphs/eligibility.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "meta/op/registry.h"
#include "meta/trace/trace.h"
#include "program/program.h"
#include "program/step_call.h"
#include "step/cudagraphs/mutations.h"

namespace metaprof {
namespace {

constexpr std::string_view kReasons[] = {
    "none",      "several_devices", "host_node",     "incompatible_operator",
    "data_read", "number_input",    "dynamic_sizes", "mutated_input"};

CapturePlace place_of(const Program& program, const GraphNode& node) {
  CapturePlace place{.op = node.op, .module = "", .line = ""};
  if (node.modules >= 0 && !program.module_stacks[static_cast<size_t>(node.modules)].empty())
    place.module = program.module_stacks[static_cast<size_t>(node.modules)].back().path;
  if (node.source >= 0 && !program.source_stacks[static_cast<size_t>(node.source)].empty()) {
    const SourceLine& line = program.source_stacks[static_cast<size_t>(node.source)].back();
    place.line = fmt::format("{}:{}{}{}", line.file, line.line, line.code.empty() ? "" : ": ", line.code);
  }
  return place;
}

// "aten::nonzero in model.router (net.py:12: rows = mask.nonzero())"
std::string shown(const CapturePlace& place) {
  std::string text = place.op;
  if (!place.module.empty()) text += " in " + place.module;
  if (!place.line.empty()) text += " (" + place.line + ")";
  return text;
}

std::string device_name(const std::optional<Device>& device) {
  if (!device || *device == kModelDevice) return "the model's device";
  return device->is_cpu() ? "cpu" : fmt::format("cuda:{}", device->index);
}

// Calls in their order, those of graphs inside at their place.
template <class Visit>  // bool Visit(const Graph&, const GraphNode&): false ends the walk
bool visit_calls(const Graph& graph, const Visit& visit) {
  for (const GraphNode& node : graph.nodes) {
    if (!visit(graph, node)) return false;
    for (const Operand& operand : node.operands)
      if (operand.kind == Operand::Kind::graph && !visit_calls(*operand.graph, visit)) return false;
  }
  return true;
}

template <class Visit>  // Visit(ValueId)
void visit_results(const GraphNode& node, const Visit& visit) {
  for (const Target& target : node.targets)
    for (const ValueId value : target.values)
      if (value != kNoValue) visit(value);
}

class Judge {
 public:
  Judge(const Program& program, const Registry& registry, const CapturePolicy& policy)
      : program_(program), registry_(registry), policy_(policy) {}

  CaptureVerdict run() {
    verdict_.graph = "forward";
    const std::vector<Mutation> mutations = input_mutations(program_, registry_);
    list_inputs(mutations);
    find_devices();
    judge_devices();
    judge_operators();
    judge_inputs();
    judge_mutations(mutations);
    return std::move(verdict_);
  }

 private:
  void skip(SkipReason reason, std::string message, CapturePlace place = {}) {
    if (!verdict_.captured()) return;
    verdict_.reason = reason;
    verdict_.message = std::move(message);
    verdict_.place = std::move(place);
  }

  const TensorFacts* facts_of_input(size_t i) const {
    const ValueId value = program_.graph.inputs[i];
    if (value == kNoValue) return nullptr;
    const auto& tensor = program_.graph.values[static_cast<size_t>(value)].tensor;
    return tensor ? &*tensor : nullptr;
  }

  void list_inputs(const std::vector<Mutation>& mutations) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const ProgramInput& input = program_.inputs[i];
      if (input.kind == ProgramInput::Kind::constant || input.tied_to >= 0) continue;
      CaptureInput listed{.name = input.name, .fixed = input.kind != ProgramInput::Kind::user, .copied = {}};
      const TensorFacts* facts = facts_of_input(i);
      if (facts != nullptr && !listed.fixed) {
        listed.copied.count = element_size(facts->dtype);
        for (const int64_t size : facts->sizes) listed.copied.count *= size;
      }
      const bool managed = policy_.earlier_outputs.contains(input.name);
      if (managed) listed.copied = {};
      if (std::ranges::find(mutations, i, &Mutation::input) != mutations.end())
        listed.mutation =
            listed.fixed ? MutationKind::state : (managed ? MutationKind::earlier : MutationKind::unmanaged);
      verdict_.inputs.push_back(std::move(listed));
    }
  }

  void find_devices() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const TensorFacts* facts = facts_of_input(i);
      if (facts == nullptr) continue;
      const std::string device = device_name(facts->device);
      if (!verdict_.first_nodes.emplace(device, "input " + program_.inputs[i].name).second) continue;
      places_[device] = {.op = "input " + program_.inputs[i].name, .module = "", .line = ""};
    }
    visit_calls(program_.graph, [&](const Graph& graph, const GraphNode& node) {
      visit_results(node, [&](ValueId value) {
        const auto& tensor = graph.values[static_cast<size_t>(value)].tensor;
        if (!tensor) return;
        const std::string device = device_name(tensor->device);
        if (verdict_.first_nodes.emplace(device, node.op).second) places_[device] = place_of(program_, node);
      });
      return true;
    });
  }

  void judge_devices() {
    std::vector<std::string> accelerators;
    for (const auto& [device, first] : verdict_.first_nodes)
      if (device != "cpu") accelerators.push_back(fmt::format("{} ({})", device, first));
    if (accelerators.size() > 1)
      skip(SkipReason::several_devices,
           fmt::format("tensors are on several devices: {}", fmt::join(accelerators, ", ")));
    if (const auto host = places_.find("cpu"); host != places_.end())
      skip(SkipReason::host_node, "the host has a part in it: " + shown(host->second), host->second);
  }

  void judge_operators() {
    visit_calls(program_.graph, [&](const Graph& graph, const GraphNode& node) {
      const Operator* op = registry_.find(node.op);
      if (op == nullptr) {
        if (!is_higher_order(node) && !step_call(node.op)) verdict_.unknown.insert(node.op);
        return true;
      }
      judge_operator(op->record.facts, has_mask(graph, op->schema, node), place_of(program_, node));
      return verdict_.captured();
    });
  }

  void judge_operator(const Facts& facts, bool mask, const CapturePlace& place) {
    if (facts.reads_data || facts.host_reads || mask)
      skip(SkipReason::data_read, "the host waits for the device and reads data: " + shown(place), place);
    else if (facts.cudagraph_unsafe)
      skip(SkipReason::incompatible_operator, "an operator cannot be captured: " + shown(place), place);
  }

  static bool is_higher_order(const GraphNode& node) {
    return std::ranges::any_of(node.operands,
                               [](const Operand& operand) { return operand.kind == Operand::Kind::graph; });
  }

  // Of tensors that index another, one that is a mask: how many it picks is read on the host.
  static bool has_mask(const Graph& graph, const Schema& schema, const GraphNode& node) {
    const auto is_mask = [&](ValueId value) {
      if (value == kNoValue) return false;
      const auto& tensor = graph.values[static_cast<size_t>(value)].tensor;
      return tensor && tensor->dtype == DType::b8;
    };
    for (size_t i = 0; i < schema.arguments.size() && i < node.operands.size(); ++i) {
      const Argument& argument = schema.arguments[i];
      if (argument.is_tensors() && argument.optional_elements &&
          node.operands[i].kind == Operand::Kind::values &&
          std::ranges::any_of(node.operands[i].values, is_mask))
        return true;
    }
    return false;
  }

  void judge_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const ProgramInput& input = program_.inputs[i];
      if (input.kind != ProgramInput::Kind::user) continue;
      const TensorFacts* facts = facts_of_input(i);
      if (facts == nullptr && program_.graph.inputs[i] != kNoValue)
        skip(SkipReason::number_input,
             fmt::format("input {} is no tensor: a graph has the value with which it was recorded",
                         input.name));
      const auto follows = [](int32_t expression) { return expression >= 0; };
      if (facts != nullptr && policy_.skip_dynamic_sizes &&
          std::ranges::any_of(facts->size_expressions, follows))
        skip(SkipReason::dynamic_sizes,
             fmt::format("sizes of input {} change from call to call", input.name));
    }
  }

  void judge_mutations(const std::vector<Mutation>& mutations) {
    for (const Mutation& mutation : mutations) {
      const ProgramInput& input = program_.inputs[mutation.input];
      if (input.kind != ProgramInput::Kind::user || policy_.earlier_outputs.contains(input.name)) continue;
      const CapturePlace place = place_of(program_, *mutation.node);
      skip(SkipReason::mutated_input, fmt::format("input {} is written to: {}", input.name, shown(place)),
           place);
    }
  }

  const Program& program_;
  const Registry& registry_;
  const CapturePolicy& policy_;
  CaptureVerdict verdict_;
  std::map<std::string, CapturePlace> places_;  // by device
};

}  // namespace

std::string_view to_string(SkipReason reason) { return kReasons[static_cast<size_t>(reason)]; }

CaptureVerdict judge_forward(const Program& program, const Registry& registry, const CapturePolicy& policy) {
  return Judge(program, registry, policy).run();
}

CaptureVerdict judge_run(const Trace& trace, Phase phase, const Registry& registry) {
  CaptureVerdict verdict;
  verdict.graph = to_string(phase);
  for (const CallRecord& call : trace.calls) {
    if (call.phase != phase || call.composite) continue;
    const CapturePlace place{
        .op = std::string(trace.text(call.op)), .module = std::string(trace.text(call.module)), .line = ""};
    const Operator* op = registry.find(place.op);
    const bool reads = op != nullptr && (op->record.facts.reads_data || op->record.facts.host_reads);
    const bool unsafe = op != nullptr && op->record.facts.cudagraph_unsafe;
    bool on_host = false;
    for (uint32_t i = 0; i < call.outputs; ++i) {
      const TensorRecord& result = trace.tensors[call.first_tensor + call.inputs + i];
      on_host |= result.on_host && result.storage != 0;
    }
    if (!reads && !unsafe && !on_host) continue;
    verdict.reason =
        on_host ? SkipReason::host_node : (reads ? SkipReason::data_read : SkipReason::incompatible_operator);
    verdict.message = (on_host ? "the host has a part in it: "
                               : (reads ? "the host waits for the device and reads data: "
                                        : "an operator cannot be captured: ")) +
                      shown(place);
    verdict.place = place;
    break;
  }
  return verdict;
}

std::string to_text(const CaptureVerdict& verdict) {
  return verdict.captured() ? "captured" : "skipped: " + verdict.message;
}

}  // namespace metaprof
