#pragma once
// The JSON schemas of the reports, as text within the program.

#include <string_view>
#include <vector>

namespace metaprof {

struct ReportSchema {
  std::string_view name;  ///< "profile": the schema of the JSON whose `schema` is "metaprof.profile"
  std::string_view text;  ///< draft 7, as in reports/schema/profile.schema.json
};
/// By name.
const std::vector<ReportSchema>& report_schemas();  // written by CMakeLists.txt

}  // namespace metaprof
