// Another optimizer in the place of a captured program's own.

#include <algorithm>

#include "core/error.h"
#include "program/edits/rewriting.h"
#include "program/edits/variants.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr size_t kWhat = 1, kParameters = 3;  // operands of step::optimizer_leave

// Calls between an optimizer's entering and leaving that say what the rest of the program relies on: modes, phases and
// the gradients that it has read.
bool stays(const GraphNode& node) {
  return node.op.starts_with("step::") && !is_step(node, "alias") && !is_step(node, "tensor") &&
         !is_step(node, "name") && !is_step(node, "set_data");
}

class Replacement {
 public:
  Replacement(Program& program, const std::string& name, const std::string& implementation)
      : program_(program),
        graph_(program.graph),
        name_(name),
        implementation_(implementation),
        kept_(graph_.nodes.size(), true),
        lost_(graph_.values.size()) {}

  void run() {
    find();
    check_scaling();
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (kept_[i]) check(i);
    move_drops();
    keep_nodes(graph_, kept_);
  }

 private:
  void find() {
    bool inside = false, found = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      GraphNode& node = graph_.nodes[i];
      if (is_step(node, "optimizer_enter")) {
        inside = true;
        kept_[i] = false;
      } else if (is_step(node, "optimizer_leave")) {
        inside = false;
        found |= text_operand(node, kWhat) == "step";
        replace(node);
      } else if (inside && !stays(node)) {
        kept_[i] = false;
        for_each_result(node, [&](ValueId value) { lost_[size_t(value)] = true; });
      }
    }
    if (!found) fail("--optimizer: {} takes no step of an optimizer of torch.optim", program_.origin);
  }

  // step::optimizer_leave(0, "step", "torch.optim.adam.Adam", [%w]) becomes
  // step::optimizer(0, "step", "adamw", "default", [%w])
  void replace(GraphNode& node) {
    if (node.operands.size() <= kParameters || node.operands[kParameters].kind != Operand::Kind::values)
      fail("--optimizer: {}: the parameters of the program's {} are no plain tensors", program_.origin,
           text_operand(node, 2));
    node.op = "step::optimizer";
    Operand parameters = std::move(node.operands[kParameters]);
    node.operands.resize(2);
    for (const std::string& word : {name_, implementation_})
      node.operands.emplace_back().constant = Value(word);
    node.operands.push_back(std::move(parameters));
  }

  // A fused step unscales gradients itself; others rely on the program's call.
  void check_scaling() const {
    const bool scales = std::ranges::any_of(
        graph_.nodes, [](const GraphNode& node) { return node.op.starts_with("aten::_amp_update_scale_"); });
    if (!scales) return;
    bool unscales = false;
    for (const GraphNode& node : graph_.nodes)
      unscales |= node.op.starts_with("aten::_amp_foreach_non_finite_check_and_unscale_");
    if (unscales == (implementation_ == "fused"))
      fail("--optimizer-impl {}: {} scales gradients, which a fused step unscales itself and others do not",
           implementation_, program_.origin);
  }

  // What a call takes must still be made. Names of what the optimizer made go with it.
  void check(size_t i) {
    GraphNode& node = graph_.nodes[i];
    bool misses = false;
    for_each_argument(node, [&](ValueId value) { misses |= lost_[size_t(value)]; });
    if (misses && !is_step(node, "name"))
      fail("--optimizer: {}: {} takes what the program's own optimizer has made", program_.origin,
           call_text(program_, node));
    if (misses) kept_[i] = false;
  }

  // What goes behind a call that is left out goes behind the one before it.
  void move_drops() {
    size_t last = graph_.nodes.size();
    std::vector<ValueId> early;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      std::erase_if(graph_.nodes[i].drops, [&](ValueId value) { return lost_[size_t(value)]; });
      if (kept_[i]) {
        last = i;
        continue;
      }
      auto& to = last < graph_.nodes.size() ? graph_.nodes[last].drops : early;
      to.insert(to.end(), graph_.nodes[i].drops.begin(), graph_.nodes[i].drops.end());
    }
  }

  Program& program_;
  Graph& graph_;
  const std::string &name_, &implementation_;
  std::vector<char> kept_;  // per node
  std::vector<char> lost_;  // per value: what the program's own optimizer has made
};

}  // namespace

void replace_optimizers(Program& program, const std::string& name, const std::string& implementation) {
  Replacement(program, name, implementation).run();
}

}  // namespace metaprof
