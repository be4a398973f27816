#include <nlohmann/json.hpp>

#include "reports/profile/costs.h"
#include "reports/profile/node_json.h"
#include "reports/profile/profile_report.h"
#include "reports/sections/epoch_report.h"
#include "reports/sections/execution_json.h"
#include "reports/sections/input_json.h"
#include "reports/sections/memory_json.h"
#include "reports/sections/option_json.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json options_json(const ProfileReport& report) {
  Json json = Json::object();
  for (const auto& [name, value] : report.options) json[name] = option_json(value);
  return json;
}

Json parameters_json(const Parameters& parameters) {
  Json by_module = Json::object();
  for (const auto& [path, count] : parameters.by_module) by_module[path] = count;
  return {{"count", parameters.all.count},
          {"bytes", parameters.all.bytes.count},
          {"trainable_count", parameters.trainable.count},
          {"trainable_bytes", parameters.trainable.bytes.count},
          {"tensors", parameters.all.tensors},
          {"trainable_tensors", parameters.trainable.tensors},
          {"tied", parameters.tied},
          {"by_module", by_module}};
}

Json saved_json(const Saved& saved) {
  Json by_node = Json::array();
  for (const SavedByNode& row : saved.by_node)
    by_node.push_back({{"node", row.node}, {"count", row.count}, {"bytes", row.bytes.count}});
  return {{"count", saved.count},
          {"bytes", saved.bytes.count},
          {"by_node", by_node},
          {"besides", {{"count", saved.besides_count}, {"bytes", saved.besides_bytes.count}}}};
}

Json modules_json(const ProfileReport& report) {
  Json rows = Json::array();
  for (const ModuleRow& row : report.memory.modules) {
    const auto cost = report.counts.by_module.find(row.path);
    const ByPhase<Flops> flops =
        cost == report.counts.by_module.end() ? ByPhase<Flops>{} : cost->second.counted;
    Json json = module_json(row, report.module_types);
    json["flops_forward"] = flops.forward.count;
    json["flops_backward"] = flops.backward.count;
    rows.push_back(std::move(json));
  }
  return rows;
}

Json estimated_json(const MemoryProfile& memory) {
  Json rows = Json::array();
  for (const EstimatedRow& row : memory.estimated)
    rows.push_back({{"op", row.op},
                    {"module", row.module},
                    {"storages", row.storages},
                    {"bytes", row.bytes.count},
                    {"largest", row.largest.count}});
  return rows;
}

Json attention_json(const MemoryProfile& memory) {
  Json rows = Json::array();
  for (const AttentionRow& row : memory.attention) {
    Json refused = Json::array();
    for (const auto& [implementation, why] : row.refused)
      refused.push_back({{"implementation", implementation}, {"why", why}});
    rows.push_back({{"implementation", row.implementation},
                    {"calls", row.calls},
                    {"modules", row.modules},
                    {"query", row.query},
                    {"key", row.key},
                    {"refused", refused}});
  }
  return rows;
}

Json unmodelled_json(const MemoryProfile& memory) {
  Json rows = Json::array();
  for (const UnmodelledRow& row : memory.unmodelled)
    rows.push_back({{"op", row.op},
                    {"calls", row.calls},
                    {"module", row.module},
                    {"share_of_output_bytes", row.share_of_output_bytes},
                    {"why", row.assumed ? "size follows from data" : "unknown operator"}});
  return rows;
}

Json guessed_json(const ProfileReport& report) {
  Json rows = Json::array();
  for (const GuessedRow& row : report.guessed)
    rows.push_back({{"why", row.why}, {"tensors", row.tensors}, {"bytes", row.bytes.count}});
  return rows;
}

Json workspaces_json(const WorkspaceSources& workspaces) {
  return {{"table", workspaces.table},
          {"planned", workspaces.planned},
          {"rule", workspaces.rule},
          {"unplanned_calls", workspaces.unplanned_calls},
          {"table_calls", workspaces.table_calls},
          {"planned_calls", workspaces.planned_calls},
          {"rule_calls", workspaces.rule_calls},
          {"cudnn", workspaces.cudnn == 0 ? Json(nullptr) : Json(version_text(workspaces.cudnn))},
          {"failure", text_or_null(workspaces.failure)}};
}

Json out_of_memory_json(const ProfileReport& report) {
  const Phases& phases = report.memory.phases;
  if (!phases.out_of_memory) return nullptr;
  Json json;
  add_part(json, phases.out_of_memory->part);
  json["op"] = text_or_null(phases.out_of_memory->op);
  json["module"] = phases.out_of_memory->module;
  json["requested"] = phases.out_of_memory->requested.count;
  json["allocated"] = phases.out_of_memory->allocated.count;
  json["reserved"] = phases.out_of_memory->reserved.count;
  json["needed_memory"] = report.needed_memory ? Json(report.needed_memory->count) : Json(nullptr);
  return json;
}

Json verdict_json(const ProfileReport& report) {
  const Verdict verdict = verdict_of(report);
  return {{"fits", verdict.fits},
          {"reserved_bytes", verdict.at_least ? Json(nullptr) : Json(verdict.reserved.count)},
          {"runs_from_bytes", report.runs_from ? Json(report.runs_from->count) : Json(nullptr)},
          {"outside_bytes", verdict.outside.count},
          {"outside_least_bytes", report.outside_least.count},
          {"outside_source", text_or_null(report.outside_source)},
          {"margin_bytes", verdict.kept_free().count},
          {"memory_bytes", verdict.memory.count},
          {"cure", text_or_null(report.fix)}};
}

Json kv_cache_json(const std::vector<CacheRow>& rows) {
  Json layers = Json::array();
  for (const CacheRow& row : rows)
    layers.push_back({{"layer", row.layer}, {"tokens", row.tokens}, {"bytes", row.bytes.count}});
  return layers;
}

}  // namespace

std::string profile_json(const ProfileReport& report) {
  const MemoryProfile& memory = report.memory;
  Json json;
  json["schema"] = "metaprof.profile";
  json["schema_version"] = 1;
  json["model"] = report.model;
  json["device"] = report.device;
  json["framework"] = {{"version", report.framework}, {"reason", report.framework_reason}};
  json["warnings"] = report.warnings;
  json["of_run"] = report.of_run;
  json["device_memory"] = report.device_memory.count;
  json["options"] = options_json(report);
  if (report.epoch) json["lengths"] = epoch_json(*report.epoch);
  if (report.steps_run > 0) json["steps_run"] = report.steps_run;
  json["inputs"] = inputs_json(report.inputs);
  if (!report.kv_cache.empty()) json["kv_cache"] = kv_cache_json(report.kv_cache);
  json["parameters"] = parameters_json(memory.parameters);
  json["buffers"] = {{"count", memory.parameters.buffers.count},
                     {"bytes", memory.parameters.buffers.bytes.count},
                     {"tensors", memory.parameters.buffers.tensors}};
  add_costs(json, report.counts);
  if (report.not_computed) json["flops_not_computed"] = report.not_computed->count;
  json["saved"] = saved_json(memory.saved);
  json["phases"] = phases_json(memory.phases);
  json["peak"] = peak_json(memory);
  json["modules"] = modules_json(report);
  if (report.nodes) json["nodes"] = nodes_json(report);
  json["unmodelled"] = unmodelled_json(memory);
  if (!report.guessed.empty()) json["guessed_lifetimes"] = guessed_json(report);
  json["estimated"] = estimated_json(memory);
  json["attention"] = attention_json(memory);
  json["workspaces"] = workspaces_json(report.workspaces);
  if (report.execution) json["execution"] = comparison_json(*report.execution);
  if (report.branches) json["branches"] = comparison_json(*report.branches);
  if (report.loops) json["loops"] = comparison_json(*report.loops);
  json["fits"] = verdict_of(report).fits;
  json["verdict"] = verdict_json(report);
  json["out_of_memory"] = out_of_memory_json(report);
  return json_text(json);
}

std::string baseline_json(const ProfileReport& report) {
  const Json whole = Json::parse(profile_json(report));
  Json json;
  json["schema"] = "metaprof.baseline";
  for (const char* name :
       {"schema_version", "model", "device", "device_memory", "framework", "options", "flops", "saved"})
    json[name] = whole[name];
  for (const char* name :
       {"allocated_bytes", "requested_bytes", "reserved_bytes", "op", "module", "by_category"})
    json["peak"][name] = whole["peak"][name];
  json["modules"] = Json::array();
  for (const Json& row : whole["modules"])
    if (row["saved_bytes"] != 0)
      json["modules"].push_back({{"path", row["path"]}, {"saved_bytes", row["saved_bytes"]}});
  json["out_of_memory"] = whole["out_of_memory"];
  return json_text(json);
}

}  // namespace metaprof
