#include "reports/search/rent_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "estimate/results/input_row.h"
#include "reports/sections/input_json.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

struct Words {
  std::string_view name, title, column;
};
constexpr Words kWords[] = {{"full", "full fine-tuning", "full"},
                            {"lora", "LoRA", "LoRA"},
                            {"qlora", "QLoRA", "QLoRA"},
                            {"generate", "generation", "generate"}};

const Words& words_of(const RentMethod& method) {
  return *std::ranges::find(kWords, method.name, &Words::name);
}

Bytes at_peak(const RentMethod& method, std::initializer_list<Category> categories) {
  Bytes bytes;
  for (const Category category : categories) bytes += method.at_peak[static_cast<size_t>(category)];
  return bytes;
}

std::string title_of(const RentMethod& method) {
  return std::string(words_of(method).title) + (method.recomputed ? ", recomputed" : "");
}

// The card with the least memory on which it runs; null: there is none.
const RentRow* smallest_card(const RentReport& report, size_t method) {
  const RentRow* smallest = nullptr;
  for (const RentRow& row : report.rows)
    if (row.cells[method].largest && (!smallest || row.memory < smallest->memory)) smallest = &row;
  return smallest;
}

// "full fine-tuning from h100 (79.2 GiB); LoRA from …"
std::string answer(const RentReport& report) {
  std::string text;
  for (const Words& words : kWords) {
    const RentRow* best = nullptr;
    bool recomputed = false, known = false;
    for (size_t i = 0; i < report.methods.size(); ++i) {
      const RentMethod& method = report.methods[i];
      if (method.name != words.name || !method.error.empty()) continue;
      known = true;
      const RentRow* card = smallest_card(report, i);
      if (!card || (best && best->memory <= card->memory)) continue;
      best = card;
      recomputed = method.recomputed;
    }
    if (!known) continue;
    text += text.empty() ? "" : "; ";
    text += best ? fmt::format("{} from {} ({}{})", words.title, best->device,
                               human_bytes(best->memory.count), recomputed ? ", layers recomputed" : "")
                 : fmt::format("{} on none of these cards", words.title);
  }
  return text + "\n";
}

std::string subject(const RentReport& report) {
  std::string text =
      fmt::format("{}: {} parameters in {}, PyTorch {}\ntraining: inputs {}, {}, loss {}; adapters {}\n",
                  report.model, grouped(report.parameters), report.dtype, report.framework,
                  inputs_text(report.trained_on), report.optimizer, report.loss, report.adapters);
  if (report.cache.count > 0)
    text += fmt::format("generation: a context of {} tokens, whose keys and values take {}\n",
                        grouped(report.context), human_bytes(report.cache.count));
  return text;
}

std::string parts_table(const RentReport& report, size_t width) {
  TextTable table;
  table.column("GiB", TextTable::Align::left);
  for (const char* title : {"weights", "gradients", "optimizer", "activations", "temporary", "allocated",
                            "reserved", "runs from"})
    table.optional_column(title);
  const auto gib = [](Bytes bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes.count) / (1 << 30));
  };
  for (const RentMethod& method : report.methods) {
    if (!method.error.empty()) continue;
    const Bytes weights = at_peak(method, {Category::parameter, Category::buffer});
    const Bytes gradients = at_peak(method, {Category::gradient}),
                state = at_peak(method, {Category::optimizer_state});
    const Bytes activations = at_peak(method, {Category::activation, Category::input, Category::kept});
    table.row({title_of(method), gib(weights), gib(gradients), gib(state), gib(activations),
               gib(at_peak(method, {Category::temporary, Category::workspace, Category::cached_copy})),
               gib(method.allocated), gib(method.reserved), method.runs_from ? gib(*method.runs_from) : "-"});
  }
  return table.text(0, width);
}

// What others count, beside what the step has.
std::string calculators_line(const RentReport& report) {
  const auto full = std::ranges::find_if(report.methods, [](const RentMethod& method) {
    return method.name == "full" && !method.recomputed && method.error.empty();
  });
  if (full == report.methods.end()) return "";
  const int64_t sixteen = 16 * report.parameters;
  return fmt::format(
      "Calculators that count 16 bytes for each parameter say {} for full fine-tuning. They take weights, "
      "gradients and two "
      "states in 32 bits. They leave out activations, temporary results, what the allocator rounds and "
      "caches, and the CUDA "
      "context.\n",
      human_bytes(sixteen));
}

// The steps compute in bf16, and the card emulates it.
bool lacks_dtype(const RentReport& report, const RentRow& row) {
  return !row.bf16 && report.dtype.find("bf16") != std::string::npos;
}

std::string cards_table(const RentReport& report, size_t width) {
  TextTable table;
  table.column("card", TextTable::Align::left);
  table.column("memory");
  for (const RentMethod& method : report.methods)
    if (method.error.empty())
      table.column(method.recomputed ? "recomputed" : std::string(words_of(method).column));
  const bool paged = report.cache.count > 0;
  if (paged) table.optional_column("paged");
  table.optional_column("sharded over");
  for (const RentRow& row : report.rows) {
    std::vector<std::string> cells = {row.device + (lacks_dtype(report, row) ? " *" : ""),
                                      human_bytes(row.memory.count)};
    for (size_t i = 0; i < row.cells.size(); ++i)
      if (report.methods[i].error.empty())
        cells.push_back(row.cells[i].largest
                            ? fmt::format("{}{}", *row.cells[i].largest, row.cells[i].unbounded ? "+" : "")
                            : "-");
    if (paged) cells.push_back(row.paged && *row.paged > 0 ? std::to_string(*row.paged) : "-");
    cells.push_back(!row.cards || *row.cards > 1024 ? "-" : std::to_string(*row.cards));
    table.row(std::move(cells));
  }
  return table.text(0, width);
}

std::string legend(const RentReport& report) {
  const bool star =
      std::ranges::any_of(report.rows, [&](const RentRow& row) { return lacks_dtype(report, row); });
  std::string text =
      "Numbers are the largest batch; -: not even 1 fits.\n"
      "recomputed: the column before it, with activation checkpointing of each layer.\n";
  if (report.cache.count > 0)
    text +=
        "paged: requests of the whole context at once, with keys and values in pages, as servers keep "
        "them.\n";
  text +=
      "sharded over: the number of such cards that full fine-tuning takes at the very least, with weights, "
      "gradients and states "
      "sharded (FSDP), and one sample on each.\n";
  if (star) text += "*: has no hardware for bf16; give --precision fp16.\n";
  return text;
}

Json options_json(const TypedOptions& options) {
  Json json = Json::object();
  for (const auto& [name, text] : options) json[name] = text;
  return json;
}

// What one types to see that step.
std::string command_of(const RentReport& report, const TypedOptions& options) {
  std::string text = "metaprof profile " + report.model;
  for (const auto& [name, value] : options) {
    std::string option = name;
    std::ranges::replace(option, '_', '-');
    const bool quoted = value.find_first_of("*? ") != std::string::npos;
    text += fmt::format(" --{} {}{}{}", option, quoted ? "'" : "", value, quoted ? "'" : "");
  }
  return text;
}

Json method_json(const RentReport& report, const RentMethod& method) {
  Json steps = Json::array(), commands = Json::array(), peak = Json::object();
  for (const TypedOptions& step : method.steps) {
    steps.push_back(options_json(step));
    commands.push_back(command_of(report, step));
  }
  for (size_t i = 0; i < method.at_peak.size(); ++i)
    peak[std::string(to_string(static_cast<Category>(i)))] = method.at_peak[i].count;
  return {{"method", method.name},
          {"recomputed", method.recomputed},
          {"steps", steps},
          {"commands", commands},
          {"error", method.error.empty() ? Json(nullptr) : Json(method.error)},
          {"peak_allocated_bytes", method.allocated.count},
          {"peak_reserved_bytes", method.reserved.count},
          {"runs_from_bytes", method.runs_from ? Json(method.runs_from->count) : Json(nullptr)},
          {"by_category", peak}};
}

Json row_json(const RentReport& report, const RentRow& row) {
  Json cells = Json::array();
  for (size_t i = 0; i < row.cells.size(); ++i) {
    const RentCell& cell = row.cells[i];
    cells.push_back({{"method", report.methods[i].name},
                     {"recomputed", report.methods[i].recomputed},
                     {"largest_batch", cell.largest ? Json(*cell.largest) : Json(nullptr)},
                     {"unbounded", cell.unbounded},
                     {"peak_reserved_bytes", cell.reserved.count}});
  }
  return {{"device", row.device},
          {"title", row.title},
          {"memory_bytes", row.memory.count},
          {"available_bytes", row.available.count},
          {"has_bf16", row.bf16},
          {"methods", cells},
          {"paged_requests", row.paged ? Json(*row.paged) : Json(nullptr)},
          {"least_cards", row.cards ? Json(*row.cards) : Json(nullptr)}};
}

}  // namespace

std::string rent_text(const RentReport& report, size_t width) {
  std::string text = answer(report) + subject(report);
  text += "\nWhat one sample takes at its peak, where memory has no limit\n\n" + parts_table(report, width);
  text += "\n" + calculators_line(report);
  text += "\nThe largest batch on each card\n\n" + cards_table(report, width) + "\n" + legend(report);
  for (const std::string& note : report.notes) text += "Note: " + note + "\n";
  return text;
}

std::string rent_json(const RentReport& report) {
  Json methods = Json::array(), rows = Json::array();
  for (const RentMethod& method : report.methods) methods.push_back(method_json(report, method));
  for (const RentRow& row : report.rows) rows.push_back(row_json(report, row));
  return json_text({{"schema", "metaprof.rent"},
                    {"schema_version", 1},
                    {"model", report.model},
                    {"framework", report.framework},
                    {"parameters", report.parameters},
                    {"precision", report.dtype},
                    {"optimizer", report.optimizer},
                    {"adapters", report.adapters},
                    {"loss", report.loss},
                    {"inputs", inputs_json(report.trained_on)},
                    {"context", report.context},
                    {"cache_bytes", report.cache.count},
                    {"methods", methods},
                    {"rows", rows},
                    {"notes", report.notes}});
}

}  // namespace metaprof
