#include "reports/checks/explanation_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/formats/display.h"
#include "reports/tables/json_text.h"
#include "reports/tables/text_table.h"

namespace metaprof {
namespace {

using Json = nlohmann::ordered_json;

std::string amounts(const OutOfMemoryExplanation& e) {
  const OutOfMemoryMessage& m = e.message;
  TextTable table;
  table.column("memory", TextTable::Align::left);
  table.column("amount");
  const auto row = [&](const std::string& what, Bytes bytes) { table.row({what, human_bytes(bytes.count)}); };
  row("asked for", m.asked);
  row("free on the GPU", m.free);
  row("held by tensors", m.allocated);
  if (m.in_private_pools > Bytes()) row("  of these, memory of CUDA graphs", m.in_private_pools);
  row("reserved but unallocated", m.cached);
  if (m.this_process) row("outside PyTorch's allocator", e.outside);
  row("other programs", e.others);
  row("the GPU has", m.capacity);
  if (m.allowed) row("the process may have", *m.allowed);
  return table.text(2);
}

}  // namespace

std::string explanation_text(const OutOfMemoryExplanation& e) {
  std::string text = fmt::format("Memory ran out on GPU {} (PyTorch {})", e.message.gpu,
                                 e.message.before_2_1 ? "2.0 or older" : "2.1 or newer");
  if (e.messages > 1) text += fmt::format(". This is the last of {} messages", e.messages);
  text += "\n\n" + amounts(e) + "\nWhy: " + e.why + "\n\nWhat helps, the first thing first:\n";
  for (size_t i = 0; i < e.helps.size(); ++i) text += fmt::format("  {}. {}\n", i + 1, e.helps[i]);
  return text;
}

std::string explanation_json(const OutOfMemoryExplanation& e) {
  const OutOfMemoryMessage& m = e.message;
  const auto or_null = [](const std::optional<Bytes>& bytes) {
    return bytes ? Json(bytes->count) : Json(nullptr);
  };
  Json others = Json::array();
  for (const ProcessOnDevice& process : m.others)
    others.push_back({{"process", process.number}, {"bytes", process.bytes.count}});
  return json_text({{"schema", "metaprof.explain"},
                    {"schema_version", 1},
                    {"messages", e.messages},
                    {"gpu", m.gpu},
                    {"asked", m.asked.count},
                    {"capacity", m.capacity.count},
                    {"free", m.free.count},
                    {"allocated", m.allocated.count},
                    {"reserved_but_unallocated", m.cached.count},
                    {"in_private_pools", m.in_private_pools.count},
                    {"allowed", or_null(m.allowed)},
                    {"this_process", or_null(m.this_process)},
                    {"other_processes", others},
                    {"other_programs", e.others.count},
                    {"cause", to_string(e.cause)},
                    {"missing", e.missing.count},
                    {"why", e.why},
                    {"helps", e.helps}});
}

}  // namespace metaprof
