#include "estimate/operators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "estimate/prepare/model.h"
#include "meta/op/takes.h"
#include "meta/ops/all.h"
#include "program/higher_order.h"

namespace metaprof {
namespace {

std::vector<std::string> facts_of(const Operator& op) {
  const Facts& facts = op.record.facts;
  std::vector<std::string> words;
  const auto add = [&](bool holds, const char* word) {
    if (holds) words.emplace_back(word);
  };
  add(op.record.meta.composite, "composite");
  add(facts.view, "view");
  add(op.in_place, "in-place");
  add(op.writes && !op.in_place, "writes an argument");
  add(facts.random, "random");
  add(facts.reads_data, "reads data");
  add(facts.host_reads, "read by the host");
  add(facts.unsafe_in_cuda_graphs(), "unsafe in CUDA graphs");
  add(facts.artefact, "not run by eager execution");
  switch (facts.autocast) {
    case Autocast::none: break;
    case Autocast::lower_precision: words.emplace_back("autocast: lower precision"); break;
    case Autocast::fp32: words.emplace_back("autocast: fp32"); break;
    case Autocast::fp32_set_dtype: words.emplace_back("autocast: fp32 result"); break;
    case Autocast::promote: words.emplace_back("autocast: widest type"); break;
    case Autocast::banned: words.emplace_back("autocast: an error"); break;
  }
  if (op.takes.beyond_schema) {
    const std::vector<std::string>& needs = op.takes.beyond_schema->texts;
    for (size_t i = 0; i < needs.size(); ++i)  // a range is two requirements
      if (i == 0 || needs[i] != needs[i - 1]) words.push_back("needs " + needs[i]);
  }
  return words;
}

std::vector<std::string> derivatives_of(const Operator& op) {
  std::vector<std::string> rows;
  for (const Derivatives::Row& row : op.record.derivatives.rows()) {
    std::vector<std::string_view> of, reads;
    for (const Name& name : row.of) of.push_back(name.text);
    for (const Name& name : row.reads) reads.push_back(name.text);
    rows.push_back(reads.empty() ? fmt::format("{}", fmt::join(of, ", "))
                                 : fmt::format("{} reads {}", fmt::join(of, ", "), fmt::join(reads, ", ")));
  }
  return rows;
}

OperatorRow row_of(const Operator& op) {
  OperatorRow row;
  row.name = op.name;
  row.schema = op.record.schema;
  row.summary = op.record.summary;
  row.composite = op.record.meta.composite;
  if (op.has_derivative()) row.node = op.node_name;
  row.derivatives = derivatives_of(op);
  for (const HostCode& code : op.record.host_code)
    row.kernels.emplace_back(code.device == DeviceType::cpu ? "cpu" : "cuda");
  row.flops = op.record.flops.count ? "formula" : row.composite ? "by its calls" : "free";
  row.facts = facts_of(op);
  return row;
}

// Operators of a graph and of the graphs inside it; arithmetic on sizes is none, and what only sets a mode
// around a graph counts as the graph.
void count_calls(const Graph& graph, std::map<std::string, int64_t>& calls) {
  for (const GraphNode& node : graph.nodes) {
    for (const Operand& operand : node.operands)
      if (operand.graph) count_calls(*operand.graph, calls);
    if (!region_call(node) && !makes_only_numbers(graph, node)) ++calls[node.op];
  }
}

}  // namespace

std::vector<OperatorRow> operators_with(std::string_view word) {
  std::vector<OperatorRow> rows;
  for (const auto& op : standard_registry().operators())
    if (op->name.find(word) != std::string::npos) rows.push_back(row_of(*op));
  std::sort(rows.begin(), rows.end(),
            [](const OperatorRow& a, const OperatorRow& b) { return a.name < b.name; });
  return rows;
}

Coverage coverage(const std::vector<std::string>& models) {
  Coverage result;
  std::map<std::string, CoverageRow> rows;
  for (const std::string& model : models) {
    const Program program = read_model(model).program;
    std::map<std::string, int64_t> calls;
    count_calls(program.graph, calls);
    bool all_known = true;
    for (const auto& [op, count] : calls) {
      CoverageRow& row = rows[op];
      row.op = op;
      row.known = standard_registry().find(op) != nullptr;
      row.calls += count;
      row.models.push_back(program.name);
      all_known &= row.known;
    }
    ++result.models;
    result.models_known += all_known;
  }
  for (auto& [op, row] : rows) result.operators.push_back(std::move(row));
  std::stable_sort(result.operators.begin(), result.operators.end(),
                   [](const CoverageRow& a, const CoverageRow& b) {
                     return std::pair(a.known, -a.calls) < std::pair(b.known, -b.calls);
                   });
  return result;
}

}  // namespace metaprof
