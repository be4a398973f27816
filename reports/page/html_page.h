#pragma once
// One page of HTML with everything in it: the verdict, a bar against the device's memory, the live bytes over a
// step, what is alive at any moment of it, tables with search. It needs no network and no server.

#include <string>

#include "reports/page/page_data.h"

namespace metaprof {

/// The page. Its data stands in it as JSON, as reports/page/page_data.h describes it.
std::string html_page(const PageInput& input);

}  // namespace metaprof
