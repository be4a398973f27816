#include "reports/profile/node_json.h"

#include "reports/profile/node_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

Json tensors_json(const std::vector<NodeTensor>& tensors) {
  Json json = Json::array();
  for (const NodeTensor& tensor : tensors) {
    Json shape = nullptr, dtype = nullptr;
    if (tensor.shape) {
      shape = Json::array();
      for (const int64_t size : *tensor.shape) shape.push_back(size);
      dtype = long_name(tensor.dtype);
    }
    json.push_back({{"storage", tensor.storage},
                    {"bytes", tensor.bytes.count},
                    {"shape", std::move(shape)},
                    {"dtype", std::move(dtype)},
                    {"node", tensor.maker == kNoNode ? Json(nullptr) : Json(tensor.maker)},
                    {"kept", tensor.kept},
                    {"alias", tensor.alias}});
  }
  return json;
}

void add_figures(Json& json, const NodeRow& row) {
  json["parameters"] = row.parameters.count;
  json["save_fwd_in"] = row.save_fwd_in();
  json["fwd_mem_tmp"] = row.fwd_mem_tmp.count;
  json["fwd_mem_out"] = row.fwd_mem_out.count;
  json["fwd_mem_other"] = row.fwd_mem_other.count;
  json["fwd_mem_peak"] = row.fwd_mem_peak.count;
  json["bwd_mem_tmp"] = row.bwd_mem_tmp.count;
  json["bwd_mem_out"] = row.bwd_mem_out.count;
  json["bwd_mem_grad"] = row.bwd_mem_grad.count;
  json["bwd_mem_other"] = row.bwd_mem_other.count;
  json["bwd_mem_freed"] = row.bwd_mem_freed.count;
  json["recomputed"] = row.recomputed.count;
  json["fwd_flop"] = row.fwd_flop.count;
  json["bwd_flop"] = row.bwd_flop.count;
  json["recompute_flop"] = row.recompute_flop.count;
  json["fwd_flop_counted"] = row.fwd_flop_counted.count;
  json["bwd_flop_counted"] = row.bwd_flop_counted.count;
  json["fwd_time"] = row.fwd_time;
  json["bwd_time"] = row.bwd_time;
  json["recompute_time"] = row.recompute_time;
}

}  // namespace

Json nodes_json(const ProfileReport& report) {
  const NodeProfile& nodes = *report.nodes;
  Json rows = Json::array();
  for (size_t i = 0; i < nodes.rows.size(); ++i) {
    const NodeRow& row = nodes.rows[i];
    Json json = {{"index", i},
                 {"name", row.name},
                 {"type", node_type(report, row)},
                 {"module", row.module},
                 {"op", row.op.empty() ? Json(nullptr) : Json(row.op)},
                 {"reads", row.reads},
                 {"fwd_in", tensors_json(row.fwd_in)},
                 {"fwd_tmp", tensors_json(row.fwd_tmp)},
                 {"fwd_out", tensors_json(row.fwd_out)}};
    add_figures(json, row);
    rows.push_back(std::move(json));
  }
  Json outside = Json::object();
  add_figures(outside, nodes.outside);
  return {{"granularity", to_string(nodes.granularity)},
          {"rows", std::move(rows)},
          {"outside", std::move(outside)},
          {"totals",
           {{"saved", nodes.saved.count},
            {"held", nodes.held.count},
            {"live_before_forward", nodes.live_before_forward.count},
            {"live_after_forward", nodes.live_after_forward.count},
            {"live_before_backward", nodes.live_before_backward.count},
            {"live_after_backward", nodes.live_after_backward.count}}}};
}

}  // namespace metaprof
