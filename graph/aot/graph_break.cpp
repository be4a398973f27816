#include "graph/aot/graph_break.h"

#include <algorithm>
#include <span>

#include "meta/platform/framework.h"
#include "meta/program/visit.h"

namespace metaprof {
namespace {

using Lines = std::span<const SourceLine>;  // outermost first

bool is_recurrent(const GraphNode& node) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"aten::lstm.", "aten::gru.",
                                                                     "aten::rnn_tanh.", "aten::rnn_relu."},
                             [&](std::string_view name) { return node.op.starts_with(name); });
}

// The compiler passes over functions of the framework itself, unless it looks into them from another's.
bool is_framework(const SourceLine& line) { return line.file.starts_with("torch/"); }

size_t common(Lines left, Lines right) {
  const auto [end, other] = std::ranges::mismatch(left, right);
  return static_cast<size_t>(end - left.begin());
}

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program), nodes_(program.graph.nodes) {}

  GraphBreak find(const Framework& framework) {
    const auto recurrent = std::ranges::find_if(nodes_, is_recurrent);
    if (recurrent == nodes_.end()) return {};
    name_ = recurrent->op;
    of_recurrent_ = lines_of(*recurrent);
    if (framework.compiles_around_recurrent_networks)
      return other("what is around the call is compiled in pieces");
    const auto last_user =
        std::ranges::find_if_not(of_recurrent_.rbegin(), of_recurrent_.rend(), is_framework);
    if (last_user == of_recurrent_.rend()) return other("where it is called is not known");
    const auto levels = static_cast<size_t>(of_recurrent_.rend() - last_user);
    // A function that takes the module from `self` is given up; one that calls a container of it is not.
    const bool container = levels < of_recurrent_.size() && !of_recurrent_[levels].file.ends_with("/rnn.py");
    const size_t calling = container ? levels : levels - 1;
    if (std::ranges::any_of(of_recurrent_.first(calling), is_framework))
      return other("a container of modules calls the one that uses it");
    return cut(calling, levels);
  }

 private:
  Lines lines_of(const GraphNode& node) const {
    if (node.source < 0) return {};
    return program_.source_stacks[static_cast<size_t>(node.source)];
  }
  GraphBreak other(std::string_view why) const {
    return {.resumes = 0,
            .not_modelled = "a recurrent network is in it (" + name_ +
                            "), which the compiler leaves to Python: " + std::string(why)};
  }

  // Calls that share the first `calling` lines with the recurrent one run eagerly. Code of the user's that these
  // call from deeper than `levels` would be compiled by itself.
  GraphBreak cut(size_t calling, size_t levels) const {
    size_t begin = nodes_.size(), end = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Lines lines = lines_of(nodes_[i]);
      if (common(lines, of_recurrent_) < calling) continue;
      begin = std::min(begin, i);
      end = i + 1;
      if (lines.size() > levels && !std::ranges::all_of(lines.subspan(levels), is_framework))
        return other("what runs eagerly calls modules of the user's, which are compiled by themselves");
    }
    if (begin != 0) return other("what runs before it is compiled, too");
    for (size_t i = end; i < nodes_.size(); ++i) {
      if (is_recurrent(nodes_[i])) return other("there are several");
      if (common(lines_of(nodes_[i]), of_recurrent_) != common(lines_of(nodes_[end]), of_recurrent_))
        return other("several functions go on behind it, each compiled by itself");
    }
    return {.resumes = end, .not_modelled = ""};
  }

  const Program& program_;
  const std::vector<GraphNode>& nodes_;
  std::string name_;
  Lines of_recurrent_;
};

}  // namespace

GraphBreak graph_break(const Program& program, const Framework& framework) {
  return Finder(program).find(framework);
}

std::vector<ValueId> handed_on(const Program& program, size_t node) {
  const Graph& graph = program.graph;
  std::vector<bool> made(graph.values.size(), false);
  std::vector<ValueId> values;
  const auto take = [&](ValueId value) {
    if (!made[static_cast<size_t>(value)]) return;
    made[static_cast<size_t>(value)] = false;
    values.push_back(value);
  };
  for (size_t i = 0; i < node; ++i)
    for_each_result(graph.nodes[i], [&](ValueId value) { made[static_cast<size_t>(value)] = true; });
  for (size_t i = node; i < graph.nodes.size(); ++i) for_each_argument(graph.nodes[i], take);
  for (const Operand& output : graph.outputs) for_each_value(output, take);
  return values;
}

Program part_before(const Program& program, size_t node, const std::vector<ValueId>& outputs) {
  Program part = program;
  part.graph.nodes.resize(node);
  part.graph.outputs.clear();
  part.outputs.clear();
  for (const ValueId value : outputs) {
    Operand output;
    output.kind = Operand::Kind::value;
    output.value = value;
    part.graph.outputs.push_back(output);
  }
  return part;
}

Program part_from(const Program& program, size_t node, const std::vector<ValueId>& values,
                  const std::vector<Value>& given) {
  Program part = program;
  part.graph.nodes.erase(part.graph.nodes.begin(), part.graph.nodes.begin() + static_cast<ptrdiff_t>(node));
  for (size_t i = 0; i < values.size(); ++i) {
    ValueFacts& facts = part.graph.values[static_cast<size_t>(values[i])];
    ProgramInput input;
    input.value = values[i];
    input.name = facts.name;
    if (given[i].is_tensor()) {
      const Tensor& tensor = given[i].tensor();
      const bool learns = tensor.requires_grad();
      if (facts.tensor && !part.resizing.empty()) part.resizing.inputs[values[i]] = facts.tensor->sizes;
      input.kind = learns ? ProgramInput::Kind::parameter : ProgramInput::Kind::user;
      facts.tensor = TensorFacts{.dtype = tensor.dtype(),
                                 .sizes = tensor.sizes(),
                                 .strides = tensor.strides(),
                                 .requires_grad = learns,
                                 .device = {},
                                 .size_expressions = {},
                                 .stride_expressions = {}};
      if (!tensor.is_cuda()) facts.tensor->device = tensor.device();
    } else {
      input.kind = ProgramInput::Kind::constant;
      input.constant = given[i];
    }
    part.graph.inputs.push_back(values[i]);
    part.inputs.push_back(std::move(input));
  }
  return part;
}

}  // namespace metaprof
