#include "reports/sections/epoch_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

std::string batch_text(const BatchShape& batch) {
  return fmt::format("{} x {} tokens", batch.samples, grouped(batch.tokens));
}

std::string what_it_is(const EpochReport& epoch) {
  std::string text =
      fmt::format("{} samples in {} batches, {} steps; {} different shapes", grouped(epoch.samples),
                  grouped(epoch.batches), grouped(epoch.steps), grouped(epoch.shapes));
  if (epoch.knows_samples) text += fmt::format("; {:.0f} % of the tokens are padding", 100 * epoch.padding);
  if (epoch.left_over > 0)
    text += fmt::format("; the last {} batches make no whole step and are left out", epoch.left_over);
  return text + "\n";
}

// Whether what came before matters: a step reserves more than its like alone.
std::string history_line(const EpochReport& epoch) {
  const int64_t alone = epoch.largest_alone.count, needed = epoch.needed().count;
  const std::string batch =
      fmt::format("a batch of {} alone reserves {}", batch_text(epoch.largest), human_bytes(alone));
  if (needed <= alone) return batch + "\n";
  return fmt::format("{}; after shorter ones {:.1f} % more, because their memory is cached in other pieces\n",
                     batch, 100.0 * static_cast<double>(needed - alone) / static_cast<double>(alone));
}

std::string peaks_table(const EpochRun& run) {
  TextTable table;
  table.column("peak of a step", TextTable::Align::left);
  for (const char* title : {"largest", "in step", "99 % below", "mean"}) table.column(title);
  for (const auto& [name, peaks] : {std::pair("allocated", run.allocated), {"reserved", run.reserved}})
    table.row({name, human_bytes(peaks.largest.count), fmt::format("{}", peaks.step),
               human_bytes(peaks.percentile_99.count), human_bytes(peaks.mean.count)});
  return table.text();
}

std::string changes_table(const EpochReport& epoch) {
  TextTable table;
  table.column("change", TextTable::Align::left);
  for (const char* title : {"steps", "padding", "allocated", "reserved"}) table.column(title);
  table.column("fits", TextTable::Align::left);
  const auto add = [&](const std::string& change, int64_t steps, double padding, const EpochRun& run,
                       bool fits) {
    table.row({change, grouped(steps), epoch.knows_samples ? fmt::format("{:.0f} %", 100 * padding) : "-",
               human_bytes(run.allocated.largest.count), human_bytes(run.reserved.largest.count),
               fits ? "yes" : "no"});
  };
  add("(as it is)", epoch.steps, epoch.padding, epoch.without_limit ? *epoch.without_limit : epoch.run,
      !epoch.run.ended);
  for (const EpochChange& row : epoch.changes) add(row.change, row.steps, row.padding, row.run, row.fits);
  return table.text();
}

Json batch_json(const BatchShape& batch) { return {{"samples", batch.samples}, {"tokens", batch.tokens}}; }

Json peaks_json(const OverSteps& peaks) {
  return {{"largest", peaks.largest.count},
          {"step", peaks.step},
          {"percentile_99", peaks.percentile_99.count},
          {"mean", peaks.mean.count}};
}

Json run_json(const EpochRun& run) {
  Json json = {{"steps", run.steps},
               {"peak_allocated_bytes", peaks_json(run.allocated)},
               {"peak_reserved_bytes", peaks_json(run.reserved)},
               {"out_of_memory", nullptr}};
  if (run.ended)
    json["out_of_memory"] = {{"step", run.ended->step},
                             {"batch", batch_json(run.ended->batch)},
                             {"phase", std::string(to_string(run.ended->phase))},
                             {"requested", run.ended->requested.count},
                             {"allocated", run.ended->allocated.count},
                             {"reserved", run.ended->reserved.count}};
  return json;
}

}  // namespace

std::string epoch_end_line(const EpochReport& epoch) {
  if (!epoch.run.ended) return "";
  const EpochEnd& end = *epoch.run.ended;
  return fmt::format(
      "Out of memory in step {} of {}, {}, with a batch of {}: it asks for {} while {} are allocated and {} "
      "lie "
      "in the allocator's cache in pieces that are too small",
      end.step, epoch.steps, to_string(end.phase), batch_text(end.batch), human_bytes(end.requested.count),
      human_bytes(end.allocated.count), human_bytes(end.reserved.count - end.allocated.count));
}

std::string epoch_text(const EpochReport& epoch) {
  std::string text = what_it_is(epoch) + history_line(epoch) + "\n" +
                     peaks_table(epoch.without_limit ? *epoch.without_limit : epoch.run);
  if (!epoch.changes.empty()) text += "\n" + changes_table(epoch);
  return text;
}

nlohmann::ordered_json epoch_json(const EpochReport& epoch) {
  Json changes = Json::array();
  for (const EpochChange& row : epoch.changes) {
    Json json = {{"change", row.change},
                 {"steps", row.steps},
                 {"padding_share", row.padding},
                 {"peak_allocated_bytes", row.run.allocated.largest.count},
                 {"peak_reserved_bytes", row.run.reserved.largest.count},
                 {"fits", row.fits}};
    if (!epoch.knows_samples) json["padding_share"] = nullptr;
    changes.push_back(std::move(json));
  }
  return {{"samples", epoch.samples},
          {"batches", epoch.batches},
          {"steps", epoch.steps},
          {"shapes", epoch.shapes},
          {"left_over_batches", epoch.left_over},
          {"padding_share", epoch.knows_samples ? Json(epoch.padding) : Json(nullptr)},
          {"largest_batch", batch_json(epoch.largest)},
          {"largest_batch_alone_reserved_bytes", epoch.largest_alone.count},
          {"run", run_json(epoch.run)},
          {"without_limit", epoch.without_limit ? run_json(*epoch.without_limit) : Json(nullptr)},
          {"changes", changes}};
}

}  // namespace metaprof
