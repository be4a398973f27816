// Drawing by the Graphviz library, where it was there when this was built.

#include "core/error.h"
#include "reports/graph_dot.h"

#ifdef METAPROF_HAVE_GRAPHVIZ
#include <graphviz/gvc.h>

#include <memory>
#include <mutex>
#endif

namespace metaprof {

#ifdef METAPROF_HAVE_GRAPHVIZ

std::string svg_of_dot(const std::string& dot) {
  static std::mutex one_at_a_time;  // the library has global state
  const std::lock_guard lock(one_at_a_time);
  agseterr(AGMAX);
  const std::unique_ptr<GVC_t, int (*)(GVC_t*)> context(gvContext(), gvFreeContext);
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> graph(agmemread(dot.c_str()), agclose);
  if (!context || !graph) fail("Graphviz does not understand the drawing");
  if (gvLayout(context.get(), graph.get(), "dot") != 0) fail("Graphviz cannot lay the drawing out");
  char* data = nullptr;
  unsigned int length = 0;
  const int status = gvRenderData(context.get(), graph.get(), "svg", &data, &length);
  std::string svg(data ? data : "", status == 0 ? length : 0);
  gvFreeRenderData(data);
  gvFreeLayout(context.get(), graph.get());
  if (svg.empty()) fail("Graphviz cannot write SVG");
  return svg;
}

#else

std::string svg_of_dot(const std::string&) {
  fail(
      "SVG needs the Graphviz library (libgraphviz-dev), which was not there when this was built: write DOT, "
      "and run "
      "dot -Tsvg");
}

#endif

}  // namespace metaprof
