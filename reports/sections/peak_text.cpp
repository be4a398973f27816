#include "reports/sections/peak_text.h"

#include <fmt/format.h>

#include "core/formats/display.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Align = TextTable::Align;

}  // namespace

std::string place(const StepPart& part) {
  std::string text(to_string(part.phase));
  if (part.phase != Phase::setup) text += fmt::format(", step {}", part.step + 1);
  if (part.micro >= 0) text += fmt::format(", micro-batch {}", part.micro + 1);
  return text;
}

// ", in ConvolutionBackward0 of model.layer1"
std::string in_call(const std::string& op, const std::string& module) {
  std::string text;
  if (!op.empty()) text += ", in " + shown(op, kMostCharactersOfName);
  if (!module.empty()) text += " of " + shown(module, kMostCharactersOfName);
  return text;
}

std::string both_units(int64_t bytes) {
  return bytes < 1024 ? human_bytes(bytes) : fmt::format("{} ({} B)", human_bytes(bytes), grouped(bytes));
}

std::string category_table(const PeakMoment& peak, double least) {
  TextTable table;
  const Unit unit = unit_for_bytes(peak.bytes.count);
  table.column("category", Align::left);
  table.column(fmt::format("live, {}", unit.name));
  table.column("share, %");
  const auto row = [&](const std::string& name, int64_t bytes) {
    const double share = static_cast<double>(bytes) / static_cast<double>(peak.bytes.count);
    table.row({name, in_unit(bytes, unit), fmt::format("{:.1f}", 100.0 * share)});
  };
  int64_t small = 0;
  for (int i = 0; i < kCategories; ++i) {
    const int64_t bytes = peak.by_category[i].count;
    if (static_cast<double>(bytes) < least * static_cast<double>(peak.bytes.count)) {
      small += bytes;
    } else if (bytes > 0) {
      row(std::string(to_string(static_cast<Category>(i))), bytes);
    }
  }
  if (small > 0) row("smaller ones", small);
  row("total", peak.bytes.count);
  return table.text(2);
}

std::string largest_table(const PeakMoment& peak, const std::vector<std::string>* lines, size_t width) {
  TextTable table;
  const Unit unit = unit_for_bytes(peak.largest.empty() ? 0 : peak.largest[0].bytes.count);
  table.column(fmt::format("size, {}", unit.name));
  table.column("category", Align::left);
  table.column("tensor", Align::left);
  table.column("made by", Align::left);
  if (lines) table.column("line", Align::left);
  for (const LargeStorage& storage : peak.listed()) {
    std::string tensor =
        storage.shape ? fmt::format("{}{}", short_name(storage.dtype), to_string(SizesView(*storage.shape)))
                      : std::string("(no tensor)");
    if (!storage.name.empty()) tensor += " " + shown(storage.name, kMostCharactersOfName);
    std::string maker = shown(storage.op, kMostCharactersOfName);
    if (!storage.module.empty()) maker += " of " + shown(storage.module, kMostCharactersOfName);
    std::vector<std::string> cells = {in_unit(storage.bytes.count, unit),
                                      std::string(to_string(storage.category)), tensor, maker};
    if (lines)
      cells.push_back(
          storage.storage < lines->size() ? shown((*lines)[storage.storage], kMostCharactersOfName) : "");
    table.row(std::move(cells));
  }
  return table.text(2, width);
}

}  // namespace metaprof
