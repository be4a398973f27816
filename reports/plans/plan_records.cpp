#include "reports/plans/plan_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/append.h"
#include "core/error.h"
#include "profiler/two_pieces.h"
#include "reports/profile/node_json.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json head(const PlanReport& report, std::string_view format) {
  return {{"schema", fmt::format("metaprof.plan_input.{}", format)},
          {"schema_version", 1},
          {"model", report.model},
          {"device", report.device}};
}

std::string finished(const Json& json) { return json_text(json); }

Json stage_json(const ChainStage& stage) {
  return {{"name", stage.name},
          {"first_node", stage.first},
          {"last_node", stage.last},
          {"ftime", stage.ftime},
          {"btime", stage.btime},
          {"x", stage.x.count},
          {"xbar", stage.xbar.count},
          {"ftmp", stage.ftmp.count},
          {"btmp", stage.btmp.count},
          {"gradients", stage.gradients.count},
          {"parameters", stage.parameters.count}};
}

std::string rotor(const PlanReport& report) {
  Json json = head(report, "rotor");
  json["units"] = {{"time", "seconds"}, {"memory", "bytes"}};
  json["input"] = report.input.chain.input.count;
  Json stages = Json::array();
  for (const ChainStage& stage : report.input.chain.stages) stages.push_back(stage_json(stage));
  json["stages"] = std::move(stages);
  return finished(json);
}

// Forward nodes keep their index; the backward of node i is node n + i.
class Checkmate {
 public:
  explicit Checkmate(const PlanReport& report) : report_(report), rows_(report.input.nodes.rows) {}

  std::string write() {
    Json json = head(report_, "checkmate");
    json["units"] = {{"cost_cpu", "seconds"}, {"cost_ram", "bytes"}};
    json["parameters"] = report_.input.parameters.count;
    json["gradients"] = report_.input.trainable.count;
    json["fixed_parameter_cost"] = (report_.input.parameters + report_.input.trainable).count;
    users_.resize(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i)
      for (const int32_t read : rows_[i].reads) users_[size_t(read)].push_back(i);
    Json nodes = Json::array();
    for (size_t i = 0; i < rows_.size(); ++i) nodes.push_back(forward(i));
    for (size_t i = rows_.size(); i-- > 0;)
      if (rows_[i].has_backward) nodes.push_back(backward(i));
    json["nodes"] = std::move(nodes);
    return finished(json);
  }

 private:
  Json forward(size_t i) const {
    const NodeRow& row = rows_[i];
    Bytes result = row.fwd_mem_tmp;
    for (const NodeTensor& tensor : row.fwd_out)
      if (!tensor.alias) result += tensor.bytes;
    std::vector<int32_t> before = row.reads;
    std::sort(before.begin(), before.end());
    return node(i, row.name, false, before, row.fwd_time, result);
  }

  // It needs the gradients of those that used its result, and what it saved: its own and its inputs' results.
  Json backward(size_t i) const {
    const NodeRow& row = rows_[i];
    std::vector<int32_t> before;
    for (const size_t user : users_[i])
      if (rows_[user].has_backward) before.push_back(backward_of(user));
    for (const NodeTensor& tensor : row.fwd_in)
      if (tensor.maker != kNoNode) before.push_back(tensor.maker);
    before.push_back(static_cast<int32_t>(i));
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    return node(size_t(backward_of(i)), "backward of " + row.name, true, before, row.bwd_time,
                row.bwd_mem_out);
  }

  int32_t backward_of(size_t i) const { return static_cast<int32_t>(rows_.size() + i); }

  static Json node(size_t id, const std::string& name, bool is_backward, const std::vector<int32_t>& before,
                   double seconds, Bytes bytes) {
    return {{"id", id},
            {"name", name},
            {"backward", is_backward},
            {"predecessors", before},
            {"cost_cpu", seconds},
            {"cost_ram", bytes.count}};
  }

  const PlanReport& report_;
  const std::vector<NodeRow>& rows_;
  std::vector<std::vector<size_t>> users_;
};

std::string knapsack(const PlanReport& report) {
  Json memory = Json::array(), runtimes = Json::array(), bytes = Json::array(), seconds = Json::array(),
       nodes = Json::array(), names = Json::array();
  int64_t all_bytes = 0;
  double all_seconds = 0;
  for (const NodeRow& row : report.input.nodes.rows) {
    if (row.node.kind == ModelNode::Kind::input || row.kept().count == 0) continue;
    all_bytes += row.kept().count;
    all_seconds += row.fwd_time;
  }
  for (size_t i = 0; i < report.input.nodes.rows.size(); ++i) {
    const NodeRow& row = report.input.nodes.rows[i];
    if (row.node.kind == ModelNode::Kind::input || row.kept().count == 0) continue;
    nodes.push_back(i);
    names.push_back(row.name);
    bytes.push_back(row.kept().count);
    seconds.push_back(row.fwd_time);
    memory.push_back(static_cast<double>(row.kept().count) / static_cast<double>(all_bytes));
    runtimes.push_back(all_seconds > 0 ? row.fwd_time / all_seconds : 0);
  }
  Json json = head(report, "knapsack");
  json["units"] = {{"memory", "share of total_bytes"}, {"runtimes", "share of total_seconds"}};
  json["total_bytes"] = all_bytes;
  json["total_seconds"] = all_seconds;
  json["memory"] = std::move(memory);
  json["runtimes"] = std::move(runtimes);
  json["nodes"] = std::move(nodes);
  json["names"] = std::move(names);
  json["bytes"] = std::move(bytes);
  json["seconds"] = std::move(seconds);
  return finished(json);
}

std::string csv(const PlanReport& report) {
  std::string text = "id,lower,upper,size\n";
  for (size_t i = 0; i < report.input.storages.size(); ++i) {
    const StorageLife& life = report.input.storages[i];
    append(text, "{},{},{},{}\n", i, life.begin, life.end, life.bytes.count);
  }
  return text;
}

// What recomputing costs: nodes of the module that keep something, those first that free the most bytes per
// second of recomputation. Shares of both totals.
struct TradeOff {
  Bytes bytes;
  double seconds = 0;
  std::vector<std::pair<double, double>> curve;
};

TradeOff trade_off(const PlanInput& input, const ModulePlan& module) {
  TradeOff result;
  std::vector<const NodeRow*> rows;
  for (const int32_t node : module.nodes) {
    const NodeRow& row = input.nodes.rows[size_t(node)];
    if (row.kept().count > 0) rows.push_back(&row);
    result.bytes += row.kept();
    if (row.kept().count > 0) result.seconds += row.fwd_time;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NodeRow* a, const NodeRow* b) {
    return static_cast<double>(a->kept().count) * b->fwd_time >
           static_cast<double>(b->kept().count) * a->fwd_time;
  });
  result.curve.emplace_back(0, 0);
  double bytes = 0, seconds = 0;
  for (const NodeRow* row : rows) {
    bytes += static_cast<double>(row->kept().count);
    seconds += row->fwd_time;
    result.curve.emplace_back(bytes / static_cast<double>(result.bytes.count),
                              result.seconds > 0 ? seconds / result.seconds : 0);
  }
  return result;
}

std::string qualified(const PlanReport& report, const std::string& path) {
  return path.empty() ? report.root_type : report.root_type + "." + path;
}

Json module_json(const PlanReport& report, const ModulePlan& module) {
  constexpr double kMilliseconds = 1e3;
  Json json = {{"fqn", qualified(report, module.path)},
               {"param_per_module", module.parameters.count},
               {"grad_per_module", module.trainable.count},
               {"grad_total", module.gradients_before.count},
               {"act_fw_per_module", module.kept.count},
               {"act_bw_per_module", module.at_peak.count},
               {"act_grad_per_module", module.gradients_at_peak.count},
               {"act_total", module.kept_after.count},
               {"input_per_module", module.inputs.count},
               {"output_per_module", module.outputs.count},
               {"fw_runtime_per_module", module.forward_seconds * kMilliseconds},
               {"bw_runtime_per_module", module.backward_seconds * kMilliseconds},
               {"is_leaf", module.is_leaf}};
  const TradeOff trade = module.is_leaf ? TradeOff{} : trade_off(report.input, module);
  const TwoPieces pieces = fit_two_pieces(trade.curve);
  json["sac_runtime"] = trade.seconds * kMilliseconds;
  json["sac_memory"] = trade.bytes.count;
  json["n_segments"] = pieces.slopes.size();
  json["slopes"] = pieces.slopes;
  json["intercepts"] = pieces.intercepts;
  json["breakpoints"] = pieces.breakpoints;
  Json curve = Json::array();
  for (const auto& [memory, runtime] : trade.curve) curve.push_back(Json::array({memory, runtime}));
  json["tradeoff_curve"] = std::move(curve);
  return json;
}

Json modules_json(const PlanReport& report) {
  Json stats = Json::array();
  for (const ModulePlan& module : report.input.modules.modules) stats.push_back(module_json(report, module));
  return stats;
}

std::string sac(const PlanReport& report) {
  const ModulePlans& modules = report.input.modules;
  const auto names = [&](const std::vector<std::string>& paths) {
    Json json = Json::array();
    for (const std::string& path : paths) json.push_back(qualified(report, path));
    return json;
  };
  Json json = head(report, "sac");
  json["units"] = {{"memory", "bytes"}, {"runtime", "milliseconds"}};
  json["mod_order"] = {{"fw_pre_order", names(modules.forward_pre)},
                       {"bw_pre_order", names(modules.backward_pre)},
                       {"fw_post_order", names(modules.forward_post)},
                       {"bw_post_order", names(modules.backward_post)}};
  json["mod_stats"] = modules_json(report);
  return finished(json);
}

std::string everything(const PlanReport& report) {
  Json json = head(report, "json");
  json["units"] = {{"memory", "bytes"},
                   {"time", "seconds"},
                   {"flops", "2 per multiply-add"},
                   {"modules.runtime", "milliseconds"}};
  json["parameters"] = report.input.parameters.count;
  json["gradients"] = report.input.trainable.count;
  ProfileReport nodes;
  nodes.nodes = report.input.nodes;
  json["nodes"] = nodes_json(nodes);
  Json tensors = Json::array();
  for (size_t i = 0; i < report.input.storages.size(); ++i) {
    const StorageLife& life = report.input.storages[i];
    tensors.push_back({{"id", i},
                       {"storage", life.storage},
                       {"bytes", life.bytes.count},
                       {"category", to_string(life.category)},
                       {"lower", life.begin},
                       {"upper", life.end},
                       {"node", life.born_in == kNoNode ? Json(nullptr) : Json(life.born_in)}});
  }
  json["tensors"] = std::move(tensors);
  json["modules"] = modules_json(report);
  Json stages = Json::array();
  for (const ChainStage& stage : report.input.chain.stages) stages.push_back(stage_json(stage));
  json["chain"] = {{"input", report.input.chain.input.count}, {"stages", std::move(stages)}};
  return finished(json);
}

}  // namespace

std::vector<std::string> plan_formats() { return {"rotor", "checkmate", "sac", "knapsack", "csv", "json"}; }

std::string plan_record(const PlanReport& report, std::string_view format) {
  if (format == "rotor") return rotor(report);
  if (format == "checkmate") return Checkmate(report).write();
  if (format == "sac") return sac(report);
  if (format == "knapsack") return knapsack(report);
  if (format == "csv") return csv(report);
  if (format == "json") return everything(report);
  fail("there is no format '{}'; there are {}", format, fmt::join(plan_formats(), ", "));
}

}  // namespace metaprof
