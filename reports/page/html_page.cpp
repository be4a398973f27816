#include "reports/page/html_page.h"

#include "reports/page/page_files.h"

namespace metaprof {
namespace {

// Replaces the place holder, which stands once in the page.
void fill(std::string& page, std::string_view place, std::string_view text) {
  const size_t at = page.find(place);
  if (at != page.npos) page.replace(at, place.size(), text);
}

}  // namespace

std::string html_page(const PageInput& input) {
  std::string page(page_html);
  fill(page, "/*css*/", page_css);
  fill(page, "/*js*/", page_js);
  fill(page, "/*data*/", page_data(input));
  return page;
}

}  // namespace metaprof
