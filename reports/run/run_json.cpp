#include <nlohmann/json.hpp>

#include "capture/launch/growth.h"
#include "capture/launch/peak.h"
#include "reports/profile/costs.h"
#include "reports/run/run_report.h"
#include "reports/sections/memory_json.h"
#include "reports/tables/json_text.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

// Of the recording itself, so that what comes after the last phase is there, too.
Json recorded_phases_json(const RecordedDevice& device) {
  Json rows = Json::array();
  for (const RunPhase& row : device.phases) {
    Json json = {{"phase", row.name}};
    if (row.phase != "setup") json["step"] = row.step;
    if (row.name != row.phase) json["within"] = row.phase;
    if (row.micro >= 0) json["micro"] = row.micro;
    add_numbers(json, row.numbers);
    json["seconds"] = row.seconds;
    rows.push_back(std::move(json));
  }
  return rows;
}

Json with_lines(Json peak, const RankRun& rank) {
  if (const RunPhase* row = named_peak(rank)) peak["phase"] = row->name;
  for (size_t i = 0; i < rank.memory.peak.listed().size(); ++i) {
    const uint32_t storage = rank.memory.peak.largest[i].storage;
    const auto text = [&](const std::vector<std::string>& of) {
      return storage < of.size() ? text_or_null(of[storage]) : Json(nullptr);
    };
    peak["largest"][i]["line"] = text(rank.peak_lines);
    peak["largest"][i]["made_in"] = text(rank.peak_made_in);
    peak["largest"][i]["held_by"] = text(rank.peak_held_by);
  }
  Json holders = Json::array();
  for (const PeakHolder& holder : peak_holders(rank))
    holders.push_back(
        {{"held_by", holder.held_by}, {"bytes", holder.bytes.count}, {"storages", holder.storages}});
  peak["holders"] = std::move(holders);
  return peak;
}

Json modules_json(const RankRun& rank) {
  Json rows = Json::array();
  for (const ModuleRow& row : rank.memory.modules)
    rows.push_back(module_json(row, rank.recorded.module_types));
  return rows;
}

Json out_of_memory_json(const RecordedDevice& device) {
  if (device.out_of_memory.empty()) return nullptr;
  const RecordedOutOfMemory& failed = device.out_of_memory.back();
  return {{"phase", failed.phase},
          {"step", failed.step},
          {"module", failed.module},
          {"line", text_or_null(failed.line)},
          {"function", text_or_null(failed.function)},
          {"requested", failed.requested.count},
          {"allocated", failed.allocated.count},
          {"reserved", failed.reserved.count},
          {"times", device.out_of_memory.size()}};
}

Json models_json(const std::vector<RecordedModel>& models) {
  Json rows = Json::array();
  for (const RecordedModel& model : models) {
    Json inputs = Json::array();
    for (const auto& [sizes, dtype] : model.inputs) inputs.push_back({{"shape", sizes}, {"dtype", dtype}});
    rows.push_back(
        {{"type", model.type},
         {"parameters", {{"tensors", model.tensors}, {"trainable", model.trainable}, {"bytes", model.bytes}}},
         {"inputs", inputs}});
  }
  return rows;
}

Json growth_json(const RankRun& rank) {
  const RecordedDevice& device = rank.recorded;
  const auto steps = growth_by_step(device, rank.outside);
  const auto calls = growth_by_call(device);
  if (!steps && !calls) return nullptr;
  Json json = {{"bytes_per_step", nullptr},
               {"steps", nullptr},
               {"op", nullptr},
               {"line", text_or_null(steps ? steps->line : calls->line)},
               {"held_by", text_or_null(steps ? steps->held_by : holder_of_results(rank))},
               {"out_of_memory_at_step", nullptr},
               {"by_call", nullptr}};
  if (steps) {
    json["bytes_per_step"] = steps->per_step.count;
    json["steps"] = steps->steps;
    json["op"] = text_or_null(steps->op);
    json["out_of_memory_at_step"] = steps->ends_at;
  }
  if (calls)
    json["by_call"] = {
        {"bytes", calls->per_call.count}, {"calls", calls->calls}, {"module", calls->module},
        {"phase", calls->phase},          {"step", calls->step},   {"line", text_or_null(calls->line)}};
  return json;
}

Json steady_json(const RankRun& rank) {
  const auto steady = steady_steps(rank.recorded);
  if (!steady) return nullptr;
  return {{"first_step", steady->first},
          {"last_step", steady->last},
          {"least_bytes", steady->least.count},
          {"most_bytes", steady->most.count}};
}

Json fixes_json(const RunReport& report) {
  Json rows = Json::array();
  for (const TriedFix& fix : report.fixes.value_or(TriedFixes()).rows) {
    const auto bytes = [&](Bytes value) { return fix.ended.empty() ? Json(value.count) : Json(nullptr); };
    rows.push_back({{"name", fix.name},
                    {"change", fix.change},
                    {"peak_allocated_bytes", bytes(fix.allocated)},
                    {"peak_reserved_bytes", bytes(fix.reserved)},
                    {"fits", fix.fits},
                    {"runs_out_of_memory", fix.ran_out},
                    {"tried_in", fix.by_program ? "captured program" : "run"},
                    {"ended_by", text_or_null(fix.ended)}});
  }
  return rows;
}

// Null: they were not asked for, or are not known.
void add_rank_costs(Json& json, const RankRun& rank, const RunCosts& costs) {
  if (const auto found = costs.by_rank.find(rank.rank); found != costs.by_rank.end())
    return add_costs(json, found->second);
  for (const char* member : {"flops", "flops_all", "bytes_moved", "roofline_seconds", "expected_seconds"})
    json[member] = nullptr;
}

Json other_answers_json(const RunReport& report) {
  if (!report.other_answers) return nullptr;
  const OtherAnswers& other = *report.other_answers;
  return {{"unknown_masks", other.all_set ? "all" : "none"},
          {"allocated_bytes", other.peaks.allocated.count},
          {"reserved_bytes", other.peaks.reserved.count},
          {"out_of_memory", other.peaks.ran_out},
          {"ended_by", text_or_null(other.ended)}};
}

Json rank_json(const RunReport& report, const RankRun& rank, const RunCosts& costs) {
  const RecordedDevice& recorded = rank.recorded;
  Json reads = Json::array();
  for (const DataRead& read : recorded.reads)
    reads.push_back({{"op", read.op},
                     {"line", text_or_null(read.line)},
                     {"count", read.count},
                     {"source", read.source},
                     {"answered", read.source == "unknown" ? "zero" : read.source}});
  Json json = {{"rank", rank.rank},
               {"device", recorded.device},
               {"device_title", recorded.title},
               {"device_memory", recorded.memory.count},
               {"alloc_conf", rank.alloc_conf},
               {"models", models_json(rank.models)}};
  json["phases"] = recorded_phases_json(recorded);
  json["peak"] = with_lines(peak_json(rank.memory), rank);
  json["modules"] = modules_json(rank);
  json["data_reads"] = reads;
  json["outside_allocator"] = {
      {"context", report.real ? Json(nullptr) : Json(rank.outside.count)},
      {"libraries", recorded.outside_allocator ? Json(recorded.outside_allocator->count) : Json(nullptr)}};
  json["reserved_at_once"] = rank.reserved_at_once ? Json(rank.reserved_at_once->count) : Json(nullptr);
  json["waiting"] = {{"bytes", recorded.waiting.bytes.count}, {"line", text_or_null(recorded.waiting.line)}};
  json["workspaces"] = {{"planned", rank.emulated.planned}, {"unplanned", rank.emulated.unplanned}};
  json["out_of_memory"] = out_of_memory_json(recorded);
  json["growth"] = growth_json(rank);
  json["steady"] = steady_json(rank);
  json["reserved_since_recovery"] =
      rank.reserved_since_recovery ? Json(rank.reserved_since_recovery->count) : Json(nullptr);
  json["runs_from_bytes"] = rank.runs_from ? Json(rank.runs_from->count) : Json(nullptr);
  json["fits"] = verdict_of(report, rank).fits;
  json["fixes"] = fixes_json(report);
  add_rank_costs(json, rank, costs);
  return json;
}

}  // namespace

std::string run_json(const RunReport& report, const RunCosts& costs) {
  Json json;
  json["schema"] = "metaprof.run";
  json["schema_version"] = 1;
  json["framework"] = {{"version", text_or_null(report.torch)},
                       {"cuda", text_or_null(report.cuda)},
                       {"cudnn", report.cudnn == 0 ? Json(nullptr) : Json(report.cudnn)}};
  json["device"] = report.device;
  json["device_memory"] = report.device_memory.count;
  json["emulated"] = !report.real;
  json["device_clock"] = report.clock.empty() ? Json(nullptr) : Json(report.clock);
  json["program"] = report.program;
  json["exit_status"] = report.end.status;
  json["ended_after_steps"] = report.ended_after_steps;
  json["ended_by"] = text_or_null(report.ended);
  json["problem"] = text_or_null(report.problem);
  json["notes"] = report.notes;
  json["other_answers"] = other_answers_json(report);
  json["ranks"] = Json::array();
  for (const RankRun& rank : report.ranks) json["ranks"].push_back(rank_json(report, rank, costs));
  return json_text(json);
}

}  // namespace metaprof
