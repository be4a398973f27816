#include "reports/profile/costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

template <class Quantity>
Json by_phase_json(const ByPhase<Quantity>& figures) {
  return {{"forward", figures.forward.count},
          {"backward", figures.backward.count},
          {"recompute", figures.recompute.count},
          {"optimizer", figures.optimizer.count}};
}

// The framework's counter calls everything backward that runs while it does: what is recomputed is a part of
// it.
ByPhase<Flops> as_counted(ByPhase<Flops> flops) {
  flops.backward += flops.recompute;
  return flops;
}

// Operators that have FLOPs, with those of the phases in which any operator of the table can have some.
Json flops_json(const Counts& counts, ByPhase<Flops> Cost::*kind) {
  Json json = by_phase_json(as_counted(counts.total.*kind));
  Json by_op = Json::object();
  for (const OpCost& op : counts.by_op) {
    const ByPhase<Flops> flops = as_counted(op.cost.*kind);
    if (flops == ByPhase<Flops>{}) continue;
    Json row = {{"forward", flops.forward.count}, {"backward", flops.backward.count}};
    if (flops.recompute.count != 0) row["recompute"] = flops.recompute.count;
    if (flops.optimizer.count != 0) row["optimizer"] = flops.optimizer.count;
    by_op[op.op] = row;
  }
  json["by_op"] = by_op;
  return json;
}

Json seconds_json(const PhaseSeconds& seconds) {
  return {{"forward", seconds.forward},
          {"backward", seconds.backward},
          {"recompute", seconds.recompute},
          {"optimizer", seconds.optimizer}};
}

}  // namespace

void add_costs(Json& json, const Counts& counts) {
  json["flops"] = flops_json(counts, &Cost::counted);
  json["flops_all"] = flops_json(counts, &Cost::all);
  json["bytes_moved"] = by_phase_json(counts.total.moved);
  json["roofline_seconds"] = seconds_json(counts.roofline);
  json["expected_seconds"] = seconds_json(counts.expected);
}

std::string costs_table(const Counts& counts) {
  const Cost& total = counts.total;
  const PhaseSeconds& roofline = counts.roofline;
  TextTable table;
  table.column("first step", Align::left);
  for (const char* phase : {"forward", "backward", "recompute", "optimizer"}) table.column(phase);
  const auto flops_row = [&](const char* what, const ByPhase<Flops>& flops) {
    const Unit unit =
        unit_for_flops(std::max({flops.forward, flops.backward, flops.recompute, flops.optimizer}).count);
    table.row({fmt::format("{}, {}", what, unit.name), in_unit(flops.forward.count, unit),
               in_unit(flops.backward.count, unit), in_unit(flops.recompute.count, unit),
               in_unit(flops.optimizer.count, unit)});
  };
  flops_row("matrix products, convolutions, attention", total.counted);
  flops_row("all operators", total.all);
  const ByPhase<Bytes>& moved = total.moved;
  const Unit unit =
      unit_for_bytes(std::max({moved.forward, moved.backward, moved.recompute, moved.optimizer}).count);
  table.row({fmt::format("memory traffic at least, {}", unit.name), in_unit(moved.forward.count, unit),
             in_unit(moved.backward.count, unit), in_unit(moved.recompute.count, unit),
             in_unit(moved.optimizer.count, unit)});
  const auto intensity = [](Flops flops, Bytes bytes) {
    return bytes.count == 0 ? "-" : fmt::format("{:.1f}", arithmetic_intensity(flops, bytes));
  };
  table.row({"FLOPs per byte", intensity(total.all.forward, moved.forward),
             intensity(total.all.backward, moved.backward), intensity(total.all.recompute, moved.recompute),
             intensity(total.all.optimizer, moved.optimizer)});
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
  table.row({"time at least, ms", milliseconds(roofline.forward), milliseconds(roofline.backward),
             milliseconds(roofline.recompute), milliseconds(roofline.optimizer)});
  const PhaseSeconds& expected = counts.expected;
  table.row({"time expected, ms", milliseconds(expected.forward), milliseconds(expected.backward),
             milliseconds(expected.recompute), milliseconds(expected.optimizer)});
  return table.text();
}

}  // namespace metaprof
