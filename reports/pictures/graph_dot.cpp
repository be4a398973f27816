#include "reports/pictures/graph_dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/formats/display.h"
#include "meta/trace/module_path.h"
#include "reports/pictures/equal_layers.h"
#include "reports/profile/node_table.h"

namespace metaprof {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : shown(text, 60)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// The first `depth` segments of a path.
std::string_view prefix(std::string_view path, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = path.find('.', end + (i > 0));
    if (end == path.npos) return path;
  }
  return path.substr(0, end);
}

// Inches of a sheet less its margins.
constexpr std::string_view kPage = "  size=\"7.3,10.5\"; ratio=compress; margin=0;\n";

constexpr std::string_view kLegend = R"(  subgraph cluster_legend {
    label="legend"; style=rounded; color="#bbbbbb"; fontname="Helvetica"; fontsize=10;
    legend_kept [label="its results are kept for backward:\nthe more bytes, the darker", fillcolor="#ff9134"];
    legend_alias [label="a view, or written in place", fillcolor="#e8f1fb", style="filled,rounded,dashed"];
    legend_reader [label="reads"];
    legend_saver [label="reads, and keeps what it reads"];
    legend_kept -> legend_reader;
    legend_kept -> legend_saver [color="#c0392b"];
  }
)";

struct Drawn {
  std::string name, type;
  std::string cluster;  // path of the module around it
  int64_t kept = 0, parameters = 0, flops = 0;
  int nodes = 0;
  bool alias = true;  // all of its nodes are
};

// The nodes as they are drawn: themselves, or together with the rest of their module.
class Drawing {
 public:
  Drawing(const ProfileReport& report, const DrawingOptions& options)
      : report_(report), options_(options), rows_(report.nodes->rows), layers_(rows_, options.page) {
    const size_t most = options.most_nodes;
    int depth = kWhole;
    if (groups(depth) > most) {
      depth = 0;
      for (const NodeRow& row : rows_) depth = std::max(depth, path_depth(row.module));
      while (depth > 1 && groups(depth) > most) --depth;
    }
    collect(depth);
  }

  std::string dot() const {
    std::string text = fmt::format(
        "digraph model {{\n{}  rankdir=TB; compound=true; nodesep=0.15; ranksep=0.3;\n"
        "  node [shape=box, fontname=\"Helvetica\", fontsize=10, style=\"filled,rounded\", "
        "fillcolor=white];\n  edge [arrowsize=0.6, color=\"#888888\"];\n",
        options_.page ? kPage : "");
    text += cluster("", 1);
    if (options_.page) text += kLegend;
    for (const auto& [ends, saved] : edges_)
      text += fmt::format("  n{} -> n{}{};\n", ends.first, ends.second, saved ? " [color=\"#c0392b\"]" : "");
    return text + "}\n";
  }

 private:
  static constexpr int kWhole = -1;  // every node by itself

  std::string key(size_t i, int depth) const {
    i = layers_.stands_for(i);
    const NodeRow& row = rows_[i];
    const bool together = depth != kWhole && path_depth(row.module) >= depth;
    return together ? std::string(prefix(row.module, depth)) : fmt::format("#{}", i);
  }

  size_t groups(int depth) const {
    std::set<std::string> keys;
    for (size_t i = 0; i < rows_.size(); ++i) keys.insert(key(i, depth));
    return keys.size();
  }

  void collect(int depth) {
    std::map<std::string, size_t> index;
    std::vector<size_t> drawn_as(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const auto [found, is_new] = index.try_emplace(key(i, depth), drawn_.size());
      drawn_as[i] = found->second;
      if (is_new) begin(rows_[layers_.stands_for(i)], depth);
      add(drawn_[found->second], rows_[i], layers_.stands_for(i) == i);
    }
    const auto read_by = [&](size_t reader, int32_t read, bool saved) {
      const auto from = static_cast<size_t>(read);
      if (!layers_.between_layers(from, reader)) join(drawn_as[from], drawn_as[reader], saved);
    };
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (const int32_t read : rows_[i].reads) read_by(i, read, false);
      for (const NodeTensor& tensor : rows_[i].fwd_in)
        if (tensor.maker != kNoNode) read_by(i, tensor.maker, true);
    }
    for (size_t i = 0; i < drawn_.size(); ++i) {
      std::string path = drawn_[i].cluster;
      inside_[path].push_back(i);
      for (; !path.empty(); path = parent_path(path)) children_[std::string(parent_path(path))].insert(path);
    }
  }

  void begin(const NodeRow& row, int depth) {
    Drawn& drawn = drawn_.emplace_back();
    const bool together = depth != kWhole && path_depth(row.module) >= depth;
    const std::string path(together ? prefix(row.module, depth) : std::string_view(row.module));
    const bool is_module = together || row.node.kind == ModelNode::Kind::module;
    drawn.cluster = is_module ? std::string(parent_path(path)) : path;
    const size_t dot = path.rfind('.');
    drawn.name = is_module ? layers_.title(path).substr(dot == path.npos ? 0 : dot + 1) : row.name;
    if (!is_module && row.node.kind == ModelNode::Kind::call) {
      drawn.name = row.op.starts_with("aten::") ? row.op.substr(6) : row.op;
    } else {
      drawn.type = node_type(report_, row);
    }
    if (together) {
      const auto type = report_.module_types.find(path);
      drawn.type = type == report_.module_types.end() ? "" : type->second.substr(type->second.rfind('.') + 1);
    }
  }

  static void add(Drawn& drawn, const NodeRow& row, bool itself) {
    drawn.kept += row.kept().count;
    drawn.parameters += row.parameters.count;
    drawn.flops += row.fwd_flop.count;
    drawn.alias &= row.is_alias();
    drawn.nodes += itself;
  }

  void join(size_t from, size_t to, bool saved) {
    if (from != to) edges_[{from, to}] |= saved;
  }

  std::string node(size_t i, int64_t most) const {
    const Drawn& drawn = drawn_[i];
    std::string label = shown(drawn.name, 40);
    if (!drawn.type.empty()) label += "\n" + shown(drawn.type, 30);
    if (drawn.nodes > 1) label += fmt::format("\n{} nodes", drawn.nodes);
    if (drawn.kept > 0) label += "\nkeeps " + human_bytes(drawn.kept);
    std::string escaped;
    for (const char c : label) {
      if (c == '\n') {
        escaped += "\\n";
        continue;
      }
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    // From pale to full orange, by the share of the largest.
    std::string colour = "white";
    if (drawn.kept > 0) {
      const double share = static_cast<double>(drawn.kept) / static_cast<double>(most);
      colour = fmt::format("#ff{:02x}{:02x}", static_cast<int>(236 - 91 * share),
                           static_cast<int>(217 - 165 * share));
    } else if (drawn.alias) {
      colour = "#e8f1fb";
    }
    return fmt::format("n{} [label=\"{}\", fillcolor=\"{}\"{}];\n", i, escaped, colour,
                       drawn.alias ? ", style=\"filled,rounded,dashed\"" : "");
  }

  std::string cluster(const std::string& path, int indent) const {
    int64_t most = 1;
    for (const Drawn& drawn : drawn_) most = std::max(most, drawn.kept);
    const std::string blanks(2 * static_cast<size_t>(indent), ' ');
    std::string text;
    if (const auto found = inside_.find(path); found != inside_.end())
      for (const size_t i : found->second) text += blanks + node(i, most);
    if (const auto found = children_.find(path); found != children_.end()) {
      for (const std::string& child : found->second) {
        const std::string inner = cluster(child, indent + 1);
        text += fmt::format(
            "{}subgraph {} {{\n{}  label={}; style=rounded; color=\"#bbbbbb\"; fontname=\"Helvetica\"; "
            "fontsize=10;\n{}{}}}\n",
            blanks, in_quotes("cluster_" + child), blanks, in_quotes(layers_.title(child)), inner, blanks);
      }
    }
    return text;
  }

  const ProfileReport& report_;
  const DrawingOptions options_;
  const std::vector<NodeRow>& rows_;
  const EqualLayers layers_;
  std::vector<Drawn> drawn_;
  std::map<std::pair<size_t, size_t>, bool> edges_;        // the reader saves what it reads
  std::map<std::string, std::vector<size_t>> inside_;      // by cluster
  std::map<std::string, std::set<std::string>> children_;  // clusters in clusters
};

}  // namespace

std::string graph_dot(const ProfileReport& report, const DrawingOptions& options) {
  return Drawing(report, options).dot();
}

}  // namespace metaprof
