#include "reports/sections/memory_json.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json shape_json(const std::optional<Sizes>& shape) {
  if (!shape) return nullptr;
  Json json = Json::array();
  for (const int64_t size : *shape) json.push_back(size);
  return json;
}

Json number_json(const AllocatorNumber& number) {
  return {{"current", number.current}, {"peak", number.peak}};
}

}  // namespace

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

void add_part(Json& json, const StepPart& part) {
  json["phase"] = to_string(part.phase);
  if (part.phase != Phase::setup) json["step"] = part.step;
  if (part.micro >= 0) json["micro"] = part.micro;
}

void add_numbers(Json& json, const AllocatorNumbers& n) {
  json["allocated_bytes"] = number_json(n.allocated_bytes);
  json["requested_bytes"] = number_json(n.requested_bytes);
  json["active_bytes"] = number_json(n.active_bytes);
  json["reserved_bytes"] = number_json(n.reserved_bytes);
  json["inactive_split_bytes"] = number_json(n.inactive_split_bytes);
  json["allocation"] = number_json(n.allocation);
  json["segment"] = number_json(n.segment);
}

Json phases_json(const Phases& phases) {
  Json rows = Json::array();
  for (const PhaseRow& row : phases.rows) {
    Json json;
    add_part(json, row.part);
    add_numbers(json, row.numbers);
    rows.push_back(std::move(json));
  }
  return rows;
}

Json module_json(const ModuleRow& row, const std::map<std::string, std::string>& types) {
  const auto type = types.find(row.path);
  return {{"path", row.path},
          {"type", type == types.end() ? "" : type->second},
          {"depth", row.depth},
          {"parameters", row.parameters},
          {"saved_bytes", row.saved.count},
          {"forward_tmp", row.forward_tmp.count},
          {"forward_out", row.forward_out.count},
          {"backward_tmp", row.backward_tmp.count},
          {"backward_out", row.backward_out.count}};
}

Json peak_json(const MemoryProfile& memory) {
  const PeakMoment& peak = memory.peak;
  Json json = {{"allocated_bytes", memory.phases.peak.allocated_bytes.peak},
               {"requested_bytes", memory.phases.peak.requested_bytes.peak},
               {"reserved_bytes", memory.phases.peak.reserved_bytes.peak}};
  json["phase"] = to_string(peak.part.phase);
  json["step"] = peak.part.step;
  if (peak.part.micro >= 0) json["micro"] = peak.part.micro;
  json["op"] = text_or_null(peak.op);
  json["module"] = peak.module;
  Json by_category = Json::object();
  for (int i = 0; i < kCategories; ++i)
    by_category[std::string(to_string(static_cast<Category>(i)))] = peak.by_category[i].count;
  json["by_category"] = by_category;
  Json largest = Json::array();
  for (const LargeStorage& storage : peak.listed()) {
    largest.push_back({{"bytes", storage.bytes.count},
                       {"category", to_string(storage.category)},
                       {"shape", shape_json(storage.shape)},
                       {"dtype", storage.shape ? Json(long_name(storage.dtype)) : Json(nullptr)},
                       {"name", text_or_null(storage.name)},
                       {"op", text_or_null(storage.op)},
                       {"module", storage.module}});
  }
  json["largest"] = largest;
  return json;
}

}  // namespace metaprof
