#pragma once
// The graph of nodes as a drawing: modules are clusters, edges are what a node reads. Nodes whose results are
// kept for backward are filled, the more the darker; views and nodes that write in place have a dashed
// border. An edge is red where the reader saves what it reads.

#include <string>

#include "reports/profile/profile_report.h"

namespace metaprof {

struct DrawingOptions {
  /// More nodes than this are drawn as the modules around them, so few levels deep that this many are left.
  size_t most_nodes = 300;
  /// For a sheet of paper (A4 or Letter): no larger, with a legend, and equal layers in a row once, with the figures of
  /// all of them.
  bool page = false;
};

/// Graphviz' language. The report must have nodes.
std::string graph_dot(const ProfileReport& report, const DrawingOptions& options = {});

/// A drawing of Graphviz' language as SVG or PNG, by the Graphviz library. Errors: the library is not part of this
/// build; it refuses the text.
std::string svg_of_dot(const std::string& dot);
/// `layout`: "nop2" where the text places its nodes itself.
std::string png_of_dot(const std::string& dot, const char* layout = "dot");

}  // namespace metaprof
