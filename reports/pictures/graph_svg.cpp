// Drawing by the Graphviz library, where it was there when this was built.

#include "core/error.h"
#include "reports/pictures/graph_dot.h"

#ifdef METAPROF_GRAPHVIZ
#include <graphviz/gvc.h>

#include <memory>
#include <mutex>

#include "core/dynamic_library.h"
#endif

namespace metaprof {

#ifdef METAPROF_GRAPHVIZ

namespace {

// The functions of Graphviz that are needed; few runs draw.
struct Graphviz {
  static constexpr const char* kAdvice = "this picture needs the Graphviz library: install graphviz";
  const DynamicLibrary graphs{METAPROF_GRAPHVIZ_GRAPHS, kAdvice}, drawing{METAPROF_GRAPHVIZ, kAdvice};
  decltype(&agseterr) set_error_level = graphs.function<decltype(agseterr)>("agseterr");
  decltype(&gvContext) make_context = drawing.function<decltype(gvContext)>("gvContext");
  decltype(&agmemread) read = graphs.function<decltype(agmemread)>("agmemread");
  decltype(&agclose) close = graphs.function<decltype(agclose)>("agclose");
  decltype(&gvLayout) lay_out = drawing.function<decltype(gvLayout)>("gvLayout");
  decltype(&gvRenderData) render = drawing.function<decltype(gvRenderData)>("gvRenderData");
  decltype(&gvFreeRenderData) free_rendered =
      drawing.function<decltype(gvFreeRenderData)>("gvFreeRenderData");
  decltype(&gvFreeLayout) free_layout = drawing.function<decltype(gvFreeLayout)>("gvFreeLayout");
  // One for all drawings: after it is freed, the library (2.43) crashes in the next.
  GVC_t* const context = make_context();
};

std::string drawn_by_graphviz(const std::string& dot, const char* form, const char* layout) {
  static std::mutex one_at_a_time;  // the library has global state
  const std::lock_guard lock(one_at_a_time);
  static const Graphviz graphviz;
  graphviz.set_error_level(AGMAX);
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> graph(graphviz.read(dot.c_str()), graphviz.close);
  if (!graphviz.context || !graph) fail("Graphviz does not understand the drawing");
  if (graphviz.lay_out(graphviz.context, graph.get(), layout) != 0)
    fail("Graphviz cannot lay the drawing out");
  char* data = nullptr;
  unsigned int length = 0;
  const int status = graphviz.render(graphviz.context, graph.get(), form, &data, &length);
  std::string picture(data ? data : "", status == 0 ? length : 0);
  graphviz.free_rendered(data);
  graphviz.free_layout(graphviz.context, graph.get());
  if (picture.empty()) fail("Graphviz cannot write {}", form);
  return picture;
}

}  // namespace

std::string svg_of_dot(const std::string& dot) { return drawn_by_graphviz(dot, "svg", "dot"); }

// Twice as many pixels as points.
std::string png_of_dot(const std::string& dot, const char* layout) {
  std::string fine = dot;
  if (const size_t brace = fine.find('{'); brace != std::string::npos) fine.insert(brace + 1, " dpi=144;");
  return drawn_by_graphviz(fine, "png", layout);
}

#else

std::string svg_of_dot(const std::string&) {
  fail(
      "SVG needs the Graphviz library (libgraphviz-dev), which was not there when this was built: write DOT, "
      "and run "
      "dot -Tsvg");
}
std::string png_of_dot(const std::string&, const char*) {
  fail(
      "PNG needs the Graphviz library (libgraphviz-dev), which was not there when this was built: write SVG "
      "or DOT");
}

#endif

}  // namespace metaprof
