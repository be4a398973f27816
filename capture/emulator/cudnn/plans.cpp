#include "capture/emulator/cudnn/plans.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "capture/emulator/cudnn/helper.h"
#include "capture/emulator/machine/environment.h"
#include "capture/emulator/machine/log.h"

namespace metaprof::emulator::cudnn {
namespace {

using Numbers = std::vector<int64_t>;

// Attributes of tensors and convolutions.
enum : int {
  tensor_type = 901,
  tensor_sizes = 902,
  tensor_strides = 903,
  compute_type = 100,
  convolution_mode = 101,
  dilations = 102,
  filter_strides = 103,
  paddings_after = 104,
  paddings_before = 105,
  graph_operations = 801,
};

// Where the three kinds of convolution keep their parts; x, w and y are input, weight and output whatever is computed.
struct Names {
  int kind;
  const char* word;
  int convolution, w, x, y;
};
constexpr Names kNames[] = {{convolution_forward, "conv_fwd", 702, 703, 704, 705},
                            {convolution_data_gradient, "conv_dgrad", 708, 709, 710, 711},
                            {convolution_weight_gradient, "conv_wgrad", 714, 715, 716, 717}};

enum DataType : int64_t { f32 = 0, f64 = 1, f16 = 2, bf16 = 9 };

const char* word_of(int64_t type) {
  switch (type) {
    case f32: return "fp32";
    case f64: return "fp64";
    case f16: return "fp16";
    case bf16: return "bf16";
    default: return nullptr;
  }
}

void add(std::string& question, const Numbers& numbers) {
  question += '|';
  for (const int64_t n : numbers) question += std::to_string(n) + ',';
}

// Says how the answer of an operation is computed from others: what the helper's words leave out must be as usual.
bool is_plain(const Node& convolution, const Node& x, const Node& w, const Node& y) {
  constexpr int64_t cross_correlation = 1;
  const int64_t type = x.number(tensor_type);
  if (!word_of(type) || w.number(tensor_type) != type || y.number(tensor_type) != type) return false;
  if (convolution.number(compute_type) != (type == f64 ? f64 : f32)) return false;
  if (convolution.number(convolution_mode) != cross_correlation) return false;
  const Numbers stride = convolution.numbers(filter_strides), dilation = convolution.numbers(dilations),
                padding = convolution.numbers(paddings_before);
  const Numbers in = x.numbers(tensor_sizes), filter = w.numbers(tensor_sizes), out = y.numbers(tensor_sizes);
  const size_t dims = stride.size();
  if (padding != convolution.numbers(paddings_after) || padding.size() != dims || dilation.size() != dims)
    return false;
  if (in.size() != dims + 2 || filter.size() != dims + 2 || out.size() != dims + 2) return false;
  for (size_t d = 0; d < dims; ++d)  // with an output padding, sizes do not follow from the others
    if (out[d + 2] != (in[d + 2] + 2 * padding[d] - dilation[d] * (filter[d + 2] - 1) - 1) / stride[d] + 1)
      return false;
  return true;
}

}  // namespace

std::string question_about(const Node& graph) {
  const Attribute* const operations = graph.find(graph_operations);
  if (!operations || operations->nodes.size() != 1) return {};
  const Node& operation = *operations->nodes[0];
  for (const Names& names : kNames) {
    if (operation.kind != names.kind) continue;
    const Node *const convolution = operation.node(names.convolution), *const x = operation.node(names.x),
                      *const w = operation.node(names.w), *const y = operation.node(names.y);
    if (!convolution || !x || !w || !y || !is_plain(*convolution, *x, *w, *y)) return {};
    std::string question = std::string(names.word) + "|" + word_of(x->number(tensor_type));
    add(question, x->numbers(tensor_sizes));
    add(question, w->numbers(tensor_sizes));
    for (const int list : {filter_strides, paddings_before, dilations})
      add(question, convolution->numbers(list));
    for (const Node* const tensor : {x, w, y}) add(question, tensor->numbers(tensor_strides));
    return question;
  }
  return {};
}

namespace {

double elements(const Node& tensor) {
  double product = 1;
  for (const int64_t size : tensor.numbers(tensor_sizes)) product *= static_cast<double>(size);
  return product;
}

int bytes_of(const Node& tensor) {
  const int64_t type = tensor.number(tensor_type);
  return type == f64 ? 8 : type == f16 || type == bf16 ? 2 : 4;
}

// Every tensor that is in memory, once.
void add_tensors(const Node& node, std::vector<const Node*>& seen, Plan& plan) {
  constexpr int tensor = 17, tensor_is_virtual = 907;
  for (const Attribute& attribute : node.attributes)
    for (const auto& part : attribute.nodes) {
      if (std::find(seen.begin(), seen.end(), part.get()) != seen.end()) continue;
      seen.push_back(part.get());
      if (part->kind == tensor && part->number(tensor_is_virtual) != 1)
        plan.moved += elements(*part) * bytes_of(*part);
      add_tensors(*part, seen, plan);
    }
}

// Each output of a convolution is a sum over a filter; the gradients have as many products.
void add_convolution(const Node& operation, const Names& names, Plan& plan) {
  const Node *const w = operation.node(names.w), *const y = operation.node(names.y);
  if (!w || !y) return;
  const Numbers filter = w->numbers(tensor_sizes);
  if (filter.empty() || filter[0] == 0) return;
  plan.flops += 2 * elements(*y) * elements(*w) / static_cast<double>(filter[0]);
  plan.element_bytes =
      bytes_of(*w) == 4 ? 2 : bytes_of(*w);  // TF32 is on by default: half of the rate of 16 bits
  if (bytes_of(*w) == 4) plan.flops *= 2;
}

}  // namespace

Plan plan_of(const Node& graph) {
  Plan plan{.workspace = plan_workspace_of(graph)};
  std::vector<const Node*> seen;
  add_tensors(graph, seen, plan);
  if (const Attribute* const operations = graph.find(graph_operations))
    for (const auto& operation : operations->nodes)
      for (const Names& names : kNames)
        if (operation->kind == names.kind) add_convolution(*operation, names, plan);
  return plan;
}

namespace {

std::mutex helper_mutex;

// Attention is a graph of two products forward, and of five backward. Besides the part that its frontend computes by itself its plans take
// 256 bytes on compute capability 9.0 (an H200, docs/evidence/h200.md), and 128 backward on others (plans of cuDNN 9.19).
int64_t attention_workspace(const Node& graph) {
  constexpr int matrix_product = 19;
  const Attribute* const operations = graph.find(graph_operations);
  const auto products = !operations ? 0 : std::ranges::count_if(operations->nodes, [](const auto& operation) {
    return operation->kind == matrix_product;
  });
  if (products < 2) return 0;
  if (environment().device.sm >= 90) return 256;
  return products > 2 ? 128 : 0;
}

}  // namespace

std::optional<int64_t> workspace_after(const std::string& question, int skipped) {
  const std::lock_guard lock(helper_mutex);
  return ask_helper("skip " + std::to_string(skipped) + " " + question);
}

int64_t plan_workspace_of(const Node& graph) {
  if (environment().cudnn.empty()) return 0;
  const std::string question = question_about(graph);
  if (question.empty()) return attention_workspace(graph);
  static std::map<std::string, int64_t> known;
  const std::lock_guard lock(helper_mutex);
  if (const auto found = known.find(question); found != known.end()) return found->second;
  const std::optional<int64_t> answer = ask_helper(question);
  log_plan(answer.value_or(0), answer ? "cudnn" : "rule", question);
  return known[question] = answer.value_or(0);
}

}  // namespace metaprof::emulator::cudnn
