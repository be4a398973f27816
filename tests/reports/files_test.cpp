// The reports that are files for other programs, of tests/data/traces/two_layers.trace, against those on file
// in tests/data/reports. After a change that is meant: METAPROF_WRITE_GOLDEN=1 ./test reports, and look at
// the difference that git shows.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/formats/json_string.h"
#include "core/formats/pickle_writer.h"
#include "meta/trace/text.h"
#include "reports/exports/chrome_trace.h"
#include "reports/exports/folded.h"
#include "reports/exports/memory_snapshot.h"
#include "reports/exports/open_metrics.h"
#include "reports/pictures/graph_dot.h"
#include "reports/profile/profile_report.h"
#include "tests/reports/two_layers.h"

namespace metaprof {
namespace {

// Every family has its type before its values, and the text its end (OpenMetrics 1.0).
TEST_F(TwoLayersFiles, Metrics) {
  report_.model = "two \"layers\"\n";
  const std::string text = open_metrics(report_);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
  const std::string labels = "{model=\"two \\\"layers\\\"\\\\n\",device=\"toy\"}";
  EXPECT_NE(text.find("# TYPE metaprof_peak_allocated_bytes gauge\n"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("metaprof_peak_allocated_bytes{} {}\n", labels,
                                  report_.memory.phases.peak.allocated_bytes.peak)),
            std::string::npos)
      << text;
}

TEST_F(TwoLayersFiles, TableOfNodesAsText) {
  const std::string text = profile_text(report_, {});
  expect_golden("nodes.txt", text.substr(0, text.find("\nTotals")));
}

TEST_F(TwoLayersFiles, Markdown) { expect_golden("nodes.md", profile_markdown(report_, {})); }

TEST_F(TwoLayersFiles, Csv) {
  expect_golden("nodes.csv", profile_csv(report_, {}));
  report_.nodes.reset();
  expect_golden("modules.csv", profile_csv(report_, {}));
}

TEST_F(TwoLayersFiles, TopIsTheLargestOfAllLevels) {
  report_.nodes.reset();
  TextOptions options;
  options.top = 2;
  options.sort = "saved";
  options.columns = {"saved"};
  EXPECT_EQ(profile_csv(report_, options), "module,saved\n(root),640\nfc2,512\n");
}

TEST_F(TwoLayersFiles, FoldedStacksSumToThePeak) {
  const std::string text = folded_stacks(at_peak_);
  expect_golden("folded", text);
  int64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) sum += std::stoll(line.substr(line.rfind(' ')));
  EXPECT_EQ(sum, report_.memory.peak.bytes.count);
}

TEST_F(TwoLayersFiles, ChromeTrace) {
  const std::string text = chrome_trace(schedule(trace_, kFirstGpu, kRates), "two_layers");
  expect_golden("chrome.json", text);
  // Slices of a track lie beside or within each other, as viewers demand; counters have the live bytes.
  const Json events = Json::parse(text)["traceEvents"];
  std::map<int, std::vector<double>> open;
  int64_t most = 0;
  for (const Json& event : events) {
    if (event["ph"] == "X") {
      auto& ends = open[event["tid"].get<int>()];
      const double begin = event["ts"], end = begin + event["dur"].get<double>();
      while (!ends.empty() && ends.back() <= begin + 1e-9) ends.pop_back();
      if (!ends.empty()) {
        EXPECT_LE(end, ends.back() + 1e-6) << event;
      }
      ends.push_back(end);
    }
    if (event["ph"] != "C") continue;
    int64_t total = 0;
    for (const Json& bytes : event["args"]) total += bytes.get<int64_t>();
    most = std::max(most, total);
  }
  EXPECT_EQ(most, report_.memory.peak.bytes.count);
}

TEST_F(TwoLayersFiles, Graph) { expect_golden("dot", graph_dot(report_)); }

// Six calls in a.0, a.1 and b: clusters within clusters, and with less room one node for each.
TEST_F(TwoLayersFiles, LargeGraphsAreDrawnAsModules) {
  std::string text = "# phase forward step 0\n+ 1 8 input\n# enter\n";
  int storage = 1;
  for (const char* module : {"a.0", "a.1", "b"}) {
    const std::string path(module), outer = path.substr(0, path.find('.'));
    if (outer != path) text += "# enter " + outer + "\n";
    for (const char* leaf : {"lin", "act"}) {
      const std::string leaf_path = fmt::format("{}.{}", path, leaf);
      text += fmt::format("# enter {}\n# enter {}\n> x::op f32[2]@{}", path, leaf_path, storage);
      ++storage;
      text += fmt::format("\n+ {0} 8 activation\n< f32[2]@{0}\n# leave {1}\n# leave {2}\n", storage,
                          leaf_path, path);
    }
    if (outer != path) text += "# leave " + outer + "\n";
  }
  report_.nodes = profile_nodes(parse_trace(text), kFirstGpu, Granularity::module, kRates);
  const auto count_of = [](const std::string& dot, const std::string& word) {
    size_t count = 0;
    for (size_t at = 0; (at = dot.find(word, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const std::string whole = graph_dot(report_);
  EXPECT_EQ(count_of(whole, " [label="), 7u) << whole;
  EXPECT_EQ(count_of(whole, "subgraph"), 4u) << whole;
  EXPECT_NE(whole.find("subgraph \"cluster_a.0\""), std::string::npos) << whole;
  // Two levels deep: the input, a.0, a.1, and b's two modules, which are as deep.
  const std::string five = graph_dot(report_, {.most_nodes = 5});
  EXPECT_EQ(count_of(five, " [label="), 5u) << five;
  EXPECT_NE(five.find("[label=\"0\\n2 nodes"), std::string::npos) << five;
  const std::string three = graph_dot(report_, {.most_nodes = 3});
  EXPECT_EQ(count_of(three, " [label="), 3u) << three;
  EXPECT_NE(three.find("[label=\"a\\n4 nodes"), std::string::npos) << three;
}

// Three equal layers behind each other, and one that is not: on a page the first stands for the three.
TEST_F(TwoLayersFiles, EqualLayersAreDrawnOnceOnAPage) {
  std::string text = "# phase forward step 0\n+ 1 8 input\n# enter\n# enter h\n";
  for (int layer = 0; layer < 4; ++layer)
    text += fmt::format(
        "# enter h.{0}\n# enter h.{0}.lin\n> x::{1} f32[2]@{2}\n+ {3} 8 activation\n< f32[2]@{3}\n# leave "
        "h.{0}.lin\n# "
        "leave h.{0}\n",
        layer, layer < 3 ? "op" : "other", layer + 1, layer + 2);
  text += "# leave h\n# leave\n";
  report_.nodes = profile_nodes(parse_trace(text), kFirstGpu, Granularity::op, kRates);
  const std::string dot = graph_dot(report_, {.page = true});
  EXPECT_NE(dot.find("label=\"h.0 … 2, 3 equal ones\""), std::string::npos) << dot;
  EXPECT_EQ(dot.find("cluster_h.1"), std::string::npos) << dot;
  EXPECT_NE(dot.find("cluster_h.3"), std::string::npos) << dot;
  EXPECT_NE(dot.find("cluster_legend"), std::string::npos) << dot;
  const std::string whole = graph_dot(report_);
  EXPECT_NE(whole.find("cluster_h.1"), std::string::npos) << "not on a page all are drawn";
}

TEST_F(TwoLayersFiles, GraphvizDrawsTheGraph) {
  std::string svg;
  try {
    svg = svg_of_dot(graph_dot(report_));
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find(">fc1<"), std::string::npos) << svg;
  EXPECT_THROW(svg_of_dot("digraph {"), Error);
}

// A model can name its modules as it likes.
TEST_F(TwoLayersFiles, NamesOfTheModelCannotLeaveTheirPlace) {
  const Trace evil = parse_trace(
      "# phase forward step 0\n# enter \"</script>\\x01;|\\\"\"\n> \"x::\\n, y\"\n+ 1 8 activation\n< "
      "f32[2]@1\n# "
      "leave \"</script>\\x01;|\\\"\"\n");
  ExactAllocator allocator;
  ProfileReport strange = report_;
  strange.memory = profile_memory(evil, kFirstGpu, allocator);
  strange.nodes = profile_nodes(evil, kFirstGpu, Granularity::function, kRates);
  const auto alive = peak_moment(evil, kFirstGpu).largest;
  EXPECT_TRUE(Json::accept(chrome_trace(schedule(evil, kFirstGpu, kRates), "\xff\"")));
  const std::string text = page(evil, strange);
  size_t scripts = 0;
  for (size_t at = 0; (at = text.find("</script>", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 2u);
  const std::string stacks = folded_stacks(alive);
  EXPECT_EQ(std::count(stacks.begin(), stacks.end(), ' '), 1) << stacks;
  EXPECT_EQ(std::count(stacks.begin(), stacks.end(), '\n'), 1) << stacks;
  const std::string csv = profile_csv(strange, {});
  EXPECT_NE(csv.find("\"</script>\\x01;|\"\": x::\\n, y\",operator"), std::string::npos) << csv;
  EXPECT_NO_THROW(graph_dot(strange));
}

TEST(JsonText, EscapesWhatJsonAndHtmlNeed) {
  EXPECT_EQ(json_string("a\"b\\c\n<"), R"("a\"b\\c\\n\u003c")");
  EXPECT_EQ(json_string("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  for (const char* wrong : {"\xff", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"})
    EXPECT_TRUE(Json::accept(json_string(wrong)));
}

// --- the pickle
// -----------------------------------------------------------------------------------------------

// What Python makes of it, as its own JSON.
Json unpickled(const std::string& pickle) {
  const std::string base = testing::TempDir() + "metaprof_pickle" + std::to_string(getpid());
  std::ofstream(base, std::ios::binary) << pickle;
  const std::string script =
      "import json, pickle, pickletools, sys\n"
      "data = open(sys.argv[1], 'rb').read()\n"
      "assert max(op.proto for op, _, _ in pickletools.genops(data)) <= 4\n"
      "print(json.dumps(pickle.loads(data)))\n";
  std::ofstream(base + ".py") << script;
  const std::string command = METAPROF_PYTHON " " + base + ".py " + base + " > " + base + ".json";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return Json::parse(read_file(base + ".json"));
}

TEST(Pickle, WritesWhatPythonReads) {
  PickleWriter out;
  out.begin_dict();
  out.text("numbers");
  out.begin_list();
  for (const int64_t number : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, int64_t{1} << 31,
                               -(int64_t{1} << 40), INT64_MAX, INT64_MIN})
    out.integer(number);
  out.end_list();
  out.text("empty");
  out.begin_list();
  out.end_list();
  out.text("nothing");
  out.begin_dict();
  out.end_dict();
  out.text("pair");
  out.begin_tuple();
  out.text("numbers");
  out.boolean(true);
  out.end_tuple();
  out.text("not utf-8 \xff");
  out.boolean(false);
  out.text("many");
  out.begin_list();
  for (int i = 0; i < 300; ++i) out.text("text " + std::to_string(i));
  out.text("text 299");
  out.end_list();
  out.end_dict();
  const Json json = unpickled(std::move(out).finish());
  EXPECT_EQ(json["numbers"], Json::parse("[0,255,256,-1,2147483648,-1099511627776,9223372036854775807,"
                                         "-9223372036854775808]"));
  EXPECT_EQ(json["empty"], Json::array());
  EXPECT_EQ(json["nothing"], Json::object());
  EXPECT_EQ(json["pair"], (Json{"numbers", true}));
  EXPECT_EQ(json["not utf-8 \uFFFD"], false);
  EXPECT_EQ(json["many"].size(), 301u);
  EXPECT_EQ(json["many"][300], "text 299");
}

TEST_F(TwoLayersFiles, Snapshot) {
  const std::string pickle = memory_snapshot(allocator_history(trace_, kFirstGpu, {}));
  const Json json = unpickled(pickle);
  expect_golden("snapshot.json", json.dump(1) + "\n");
  // Live bytes from the events are those of the segments' blocks.
  int64_t live = 0, requested = 0;
  for (const Json& event : json["device_traces"][0]) {
    if (event["action"] == "alloc") live += event["size"].get<int64_t>();
    if (event["action"] == "free_completed") live -= event["size"].get<int64_t>();
  }
  for (const Json& segment : json["segments"]) {
    int64_t sum = 0;
    for (const Json& block : segment["blocks"]) sum += block["size"].get<int64_t>();
    EXPECT_EQ(sum, segment["total_size"]);
    requested += segment["requested_size"].get<int64_t>();
  }
  EXPECT_EQ(live, requested);
}

TEST_F(TwoLayersFiles, SnapshotEndsWhereMemoryRunsOut) {
  CachingAllocatorOptions options;
  options.device.capacity = 1;
  const Json json = unpickled(memory_snapshot(allocator_history(trace_, kFirstGpu, options)));
  EXPECT_EQ(json["device_traces"][0].back()["action"], "oom");
  EXPECT_EQ(json["device_traces"][0].back()["size"], 256);
  EXPECT_EQ(json["segments"], Json::array());
}

// The framework's own reader of snapshots.
TEST_F(TwoLayersFiles, TheFrameworkReadsTheSnapshot) {
  const char* python = std::getenv("METAPROF_TORCH_PYTHON");
  if (!python) GTEST_SKIP() << "METAPROF_TORCH_PYTHON does not name a Python that has PyTorch";
  const std::string base = testing::TempDir() + "metaprof_snapshot" + std::to_string(getpid());
  std::ofstream(base + ".pickle", std::ios::binary)
      << memory_snapshot(allocator_history(trace_, kFirstGpu, {}));
  const std::string script =
      "import pickle, sys\n"
      "from torch.cuda import _memory_viz as viz\n"
      "data = pickle.load(open(sys.argv[1], 'rb'))\n"
      "print(viz.segsum(data)); print(viz.trace(data)); print(viz.memory(data, format_flamegraph=lambda "
      "text: text))\n"
      "assert len(viz.trace_plot(data)) > 1000 and len(viz.segment_plot(data)) > 1000\n";
  std::ofstream(base + ".py") << script;
  const std::string command = std::string(python) + " " + base + ".py " + base + ".pickle > " + base + ".txt";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = read_file(base + ".txt");
  EXPECT_NE(text.find("segments: 1"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::mm"), std::string::npos) << text;
}

}  // namespace
}  // namespace metaprof
