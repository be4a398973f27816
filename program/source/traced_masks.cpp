#include "program/source/traced_masks.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "program/def_use.h"
#include "program/visit.h"

namespace metaprof {
namespace {

constexpr int64_t kMostSizeOfGroupedHeads = 256;  // use_gqa_in_sdpa

// What a mask lets through.
struct MaskParts {
  bool causal = false, everything = false;
  std::optional<int64_t> window;
};

class TracedMasks {
 public:
  explicit TracedMasks(const Program& program)
      : program_(program),
        graph_(program.graph),
        def_use_(program.graph),
        result_(program.graph),
        checks_(graph_.nodes.size()) {}

  std::optional<Graph> run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (is_mask(program_, graph_.nodes[i])) leave_out(i);
    if (changed_.empty()) return std::nullopt;
    remove_unused();
    return std::move(result_);
  }

  static bool is_mask(const Program& program, const GraphNode& node) {
    if (node.op != "aten::expand" || node.source < 0) return false;
    const auto& stack = program.source_stacks[size_t(node.source)];
    if (stack.empty() || stack.back().file.find("transformers/") == std::string::npos ||
        stack.back().code.find("mask") == std::string::npos)
      return false;
    const TensorFacts* mask = facts(program.graph, result(node));
    return mask && mask->dtype == DType::b8 && mask->sizes.size() == 4;
  }

 private:
  // ---- what calls are

  static ValueId result(const GraphNode& node) {
    return node.targets.size() == 1 && node.targets[0].values.size() == 1 ? node.targets[0].values[0]
                                                                          : kNoValue;
  }
  static const TensorFacts* facts(const Graph& graph, ValueId value) {
    return value != kNoValue && graph.values[size_t(value)].tensor ? &*graph.values[size_t(value)].tensor
                                                                   : nullptr;
  }
  const TensorFacts* facts(ValueId value) const { return facts(graph_, value); }
  static ValueId argument(const GraphNode& node, size_t position) {
    const bool is_value =
        position < node.operands.size() && node.operands[position].kind == Operand::Kind::value;
    return is_value ? node.operands[position].value : kNoValue;
  }
  static std::optional<int64_t> number(const GraphNode& node, size_t position) {
    if (position >= node.operands.size() || node.operands[position].kind != Operand::Kind::constant ||
        node.operands[position].constant.kind() != Value::Kind::integer)
      return std::nullopt;
    return node.operands[position].constant.integer();
  }
  // The call that makes the value, if it is this one; null: another does.
  const GraphNode* made_by(ValueId value, std::string_view op) const {
    if (value == kNoValue || def_use_.maker(value) == kNoNode) return nullptr;
    const GraphNode& node = graph_.nodes[size_t(def_use_.maker(value))];
    return node.op == op ? &node : nullptr;
  }
  ValueId unconverted(ValueId value) const {
    for (const std::string_view op : {"aten::to.dtype_layout", "aten::to.dtype", "aten::to.device"})
      if (const GraphNode* node = made_by(value, op)) return argument(*node, 0);
    return value;
  }

  // ---- masks (and_masks, causal_mask_function and the others of masking_utils.py)

  bool read_parts(ValueId value, MaskParts& parts) const {
    value = unconverted(value);
    if (const GraphNode* both = made_by(value, "aten::__and__.Tensor"))
      return read_parts(argument(*both, 0), parts) && read_parts(argument(*both, 1), parts);
    if (made_by(value, "aten::new_ones")) return true;
    if (made_by(value, "aten::le.Tensor")) return parts.causal = true;
    if (const GraphNode* all = made_by(value, "aten::ge.Scalar"))
      return parts.everything = number(*all, 1) == 0;
    const GraphNode* behind = made_by(value, "aten::gt.Tensor");
    const GraphNode* from = behind ? made_by(argument(*behind, 1), "aten::sub.Tensor") : nullptr;
    parts.window = from ? number(*from, 1) : std::nullopt;
    return parts.window.has_value();
  }

  // The numbers of sequences (find_packed_sequence_indices) of positions that count up.
  const GraphNode* one_sequence(ValueId value) const {
    const GraphNode* same = made_by(unconverted(value), "aten::eq.Tensor");
    const GraphNode* taken = same ? made_by(argument(*same, 0), "aten::index.Tensor") : nullptr;
    const GraphNode* counted = taken ? made_by(argument(*taken, 0), "aten::cumsum") : nullptr;
    const GraphNode* jumps = counted ? made_by(argument(*counted, 0), "aten::ne.Scalar") : nullptr;
    const GraphNode* steps = jumps ? made_by(argument(*jumps, 0), "aten::diff") : nullptr;
    return steps && counts_up(argument(*steps, 0)) ? counted : nullptr;
  }
  bool counts_up(ValueId positions) const {
    for (const std::string_view op : {"aten::expand", "aten::unsqueeze", "aten::add.Tensor"})
      if (const GraphNode* node = made_by(positions, op)) {
        const bool is_view = op != "aten::add.Tensor";
        return (is_view || number(*node, 1)) && counts_up(argument(*node, 0));
      }
    return made_by(positions, "aten::arange") || made_by(positions, "aten::arange.start");
  }

  void leave_out(size_t node) {
    const ValueId mask = result(graph_.nodes[node]);
    ValueId plain = argument(graph_.nodes[node], 0);
    const GraphNode* sequences = nullptr;
    if (const GraphNode* both = made_by(plain, "aten::__and__.Tensor"))
      if ((sequences = one_sequence(argument(*both, 1))) != nullptr) {
        const GraphNode* first = made_by(argument(*both, 0), "aten::__and__.Tensor");
        if (!first) return;
        plain = unconverted(argument(*first, 1));
      }
    MaskParts parts;
    if (!read_parts(plain, parts)) return;
    const bool skipped = is_skipped(parts, facts(mask)->sizes) && only_masks_attention(mask);
    if (skipped) {
      for (const int32_t user : def_use_.users(mask)) unmask(size_t(user), parts.causal);
      skipped_.insert(graph_.nodes[node].source);
    }
    if (sequences) {
      result_.nodes[node].operands[0].value = plain;
      look_for_sequences(*sequences);
    }
    if (skipped || sequences) changed_.insert(graph_.nodes[node].source);
  }

  static bool is_skipped(const MaskParts& parts, const Sizes& sizes) {
    const int64_t queries = sizes[2], keys = sizes[3];
    if (parts.window && keys >= *parts.window) return false;
    return parts.causal ? queries == keys : parts.everything;
  }

  // Or nothing: layers that there are none of.
  bool only_masks_attention(ValueId mask) const {
    return std::ranges::all_of(def_use_.users(mask), [&](int32_t user) {
      const GraphNode& node = graph_.nodes[size_t(user)];
      const Operand* given = node.operand_named("attn_mask");
      return node.op == "aten::scaled_dot_product_attention" && given && given->value == mask;
    });
  }

  // ---- what a plain run calls instead

  // (packed_sequence_mask[:, -1] == 0).all(), while the function's variables hold what it has made before.
  void look_for_sequences(const GraphNode& sequences) {
    const ValueId numbers = result(sequences);
    std::vector<GraphNode>& checks = checks_[size_t(def_use_.maker(numbers))];
    if (!checks.empty()) return;
    const ValueId last = add(checks, sequences, "aten::select.int", numbers, {Value(1), Value(-1)});
    const ValueId first = add(checks, sequences, "aten::eq.Scalar", last, {Value(0)});
    const ValueId found = add(checks, sequences, "aten::all", first, {});
    Operand variables;
    variables.kind = Operand::Kind::values;
    variables.values = {numbers, found};
    const GraphNode& jumps = graph_.nodes[size_t(def_use_.maker(argument(sequences, 0)))];
    const GraphNode& steps = graph_.nodes[size_t(def_use_.maker(argument(jumps, 0)))];
    variables.values.push_back(result(steps));
    const Operand* before = steps.operand_named("prepend");
    if (before && before->value != kNoValue) variables.values.push_back(before->value);
    GraphNode& held = checks.emplace_back(called_with(sequences, "step::keep"));
    held.operands.push_back(std::move(variables));
  }

  ValueId add(std::vector<GraphNode>& checks, const GraphNode& beside, const char* op, ValueId of,
              std::vector<Value> constants) {
    const auto made = static_cast<ValueId>(result_.values.size());
    result_.values.emplace_back().name = "sequences_" + std::to_string(made);
    GraphNode& node = checks.emplace_back(called_with(beside, op));
    node.operands.emplace_back().kind = Operand::Kind::value;
    node.operands.back().value = of;
    for (Value& constant : constants) node.operands.push_back(constant_operand("", std::move(constant)));
    node.targets.push_back({.list = false, .values = {made}});
    return made;
  }
  static GraphNode called_with(const GraphNode& beside, const char* op) {
    GraphNode node;
    node.op = op;
    node.modules = beside.modules;
    node.source = beside.source;
    return node;
  }

  void unmask(size_t attention, bool causal) {
    GraphNode& node = result_.nodes[attention];
    changed_.insert(node.source);
    for (Operand& operand : node.operands)
      if (operand.name == "attn_mask") operand = constant_operand(operand.name, Value());
    if (causal && size_of(argument(node, 0), 2) > 1) set(node, "is_causal");
    const ValueId key = ungrouped(node, 1), value = ungrouped(node, 2);
    const int64_t size = size_of(key, 3);
    if (key == kNoValue || value == kNoValue || size != size_of(value, 3) || size > kMostSizeOfGroupedHeads)
      return;
    node.operands[1].value = key;
    node.operands[2].value = value;
    set(node, "enable_gqa");
  }

  static void set(GraphNode& node, const std::string& flag) {
    const auto known = std::ranges::find(node.operands, flag, &Operand::name);
    if (known != node.operands.end())
      *known = constant_operand(flag, Value(true));
    else
      node.operands.push_back(constant_operand(flag, Value(true)));
  }
  static Operand constant_operand(const std::string& name, Value constant) {
    Operand operand;
    operand.name = name;
    operand.constant = std::move(constant);
    return operand;
  }

  int64_t size_of(ValueId value, size_t dimension) const {
    const TensorFacts* tensor = facts(value);
    return tensor && dimension < tensor->sizes.size() ? tensor->sizes[dimension] : -1;
  }

  // Heads before each was repeated for a group of queries (repeat_kv); kNoValue: they were not.
  ValueId ungrouped(const GraphNode& attention, size_t position) const {
    const GraphNode* joined = made_by(argument(attention, position), "aten::reshape");
    const GraphNode* repeated = joined ? made_by(argument(*joined, 0), "aten::expand") : nullptr;
    if (!repeated || repeated->source != attention.source) return kNoValue;
    ValueId heads = argument(*repeated, 0);
    const auto is_subscript = [&](const GraphNode* node) { return node && node->source == attention.source; };
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const std::string_view op : {"aten::unsqueeze", "aten::slice.Tensor"})
        if (const GraphNode* node = made_by(heads, op); is_subscript(node)) {
          heads = argument(*node, 0);
          goes_on = true;
        }
    }
    return size_of(heads, 1) < size_of(argument(attention, 0), 1) ? heads : kNoValue;
  }

  // Calls of the statements that were changed whose results nobody takes any more; of a mask those, too, that nobody took.
  void remove_unused() {
    std::vector<int> uses(result_.values.size());
    const auto count = [&](ValueId value) { ++uses[size_t(value)]; };
    for (const Operand& output : result_.outputs) for_each_value(output, count);
    std::vector<GraphNode> kept;
    for (size_t i = result_.nodes.size(); i-- > 0;) {
      for (size_t check = checks_[i].size(); check-- > 0;) {
        for_each_argument(checks_[i][check], count);
        kept.push_back(std::move(checks_[i][check]));
      }
      GraphNode& node = result_.nodes[i];
      if (changed_.contains(node.source) && is_unused(node, graph_.nodes[i], uses)) continue;
      if (!is_assertion(node)) for_each_argument(node, count);
      kept.push_back(std::move(node));
    }
    std::ranges::reverse(kept);
    std::erase_if(kept, [&](const GraphNode& node) {
      if (!is_assertion(node) || !changed_.contains(node.source)) return false;
      const ValueId asserted = argument(node, 0);
      return asserted != kNoValue && uses[size_t(asserted)] == 0;
    });
    result_.nodes = std::move(kept);
  }
  static bool is_assertion(const GraphNode& node) { return node.op == "aten::_assert_tensor_metadata"; }
  bool is_unused(const GraphNode& node, const GraphNode& before, const std::vector<int>& uses) const {
    bool was_used = false, is_used = false;
    for_each_result(before, [&](ValueId value) { was_used |= !def_use_.users(value).empty(); });
    for_each_result(node, [&](ValueId value) { is_used |= uses[size_t(value)] > 0; });
    return !is_used && (was_used || skipped_.contains(node.source));
  }

  const Program& program_;
  const Graph& graph_;
  const DefUse def_use_;
  Graph result_;
  std::vector<std::vector<GraphNode>> checks_;  // per node: calls behind it
  // Source stacks of calls that are other ones, and of masks that are not made.
  std::set<int32_t> changed_, skipped_;
};

}  // namespace

std::optional<Graph> without_traced_masks(const Program& program) {
  const auto is_mask = [&](const GraphNode& node) { return TracedMasks::is_mask(program, node); };
  if (std::ranges::none_of(program.graph.nodes, is_mask))
    return std::nullopt;  // most programs: nothing is copied
  return TracedMasks(program).run();
}

}  // namespace metaprof
