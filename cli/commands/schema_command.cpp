// metaprof schema: the JSON schemas of the reports.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/line/console.h"
#include "core/error.h"
#include "core/option_value.h"
#include "reports/schema/schemas.h"

namespace metaprof {
namespace {

constexpr const char* kSchemaDescription =
    "The JSON schema of a report (draft 7). Without a NAME: the names.\n"
    "\n"
    "  metaprof schema\n"
    "  metaprof schema profile > profile.schema.json\n"
    "\n"
    "NAME is what the report has in \"schema\", with or without \"metaprof.\" before it.\n"
    "The same schema_version only gains members: none is renamed, none is removed.\n"
    "\n"
    "Exit status: 0 success, 2 bad usage.\n";

std::string names() {
  std::string text;
  for (const ReportSchema& schema : report_schemas()) text += fmt::format("{}\n", schema.name);
  return text;
}

std::string_view schema_named(const std::string& named) {
  const std::string name = named.starts_with("metaprof.") ? named.substr(9) : named;
  const auto found = std::ranges::find(report_schemas(), name, &ReportSchema::name);
  if (found != report_schemas().end()) return found->text;
  std::vector<std::string> known;
  for (const ReportSchema& schema : report_schemas()) known.emplace_back(schema.name);
  fail("schema: there is no schema '{}'; `metaprof schema` lists them{}", named, did_you_mean(name, known));
}

}  // namespace

void add_schema_command(CommandLine& line) {
  Command command = line.add("schema", kSchemaDescription);
  auto name = std::make_shared<std::string>();
  command.option("NAME", *name, "of the report: profile");
  command.on_run([name] {
    print_text(name->empty() ? names() : std::string(schema_named(*name)));
    return int{kFine};
  });
}

}  // namespace metaprof
