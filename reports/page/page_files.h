#pragma once
// The files of reports/page and reports/plan, as they are built into the program.

#include <string_view>

namespace metaprof {

extern const std::string_view page_html, page_css, page_js;
extern const std::string_view apply_plan_py;

}  // namespace metaprof
