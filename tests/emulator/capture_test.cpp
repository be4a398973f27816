#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

constexpr int kUnsupported = 900, kInvalidated = 901, kMerge = 902, kUnmatched = 903, kUnjoined = 904,
              kIsolation = 905, kImplicit = 906, kCapturedEvent = 907, kWrongThread = 908;
constexpr int kGlobal = 0, kThreadLocal = 1, kRelaxed = 2;

TEST(Capture, CollectsWhatIsGivenToItsStreams) {
  check({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    void *main = nullptr, *side = nullptr, *event = nullptr, *graph = nullptr, *execution = nullptr;
    const auto status = [&](void* stream) {
      int value = -1;
      EXPECT_EQ(runtime("cudaStreamIsCapturing", stream, &value), 0);
      return value;
    };
    EXPECT_EQ(runtime("cudaStreamCreate", &main), 0);
    EXPECT_EQ(runtime("cudaStreamCreate", &side), 0);
    EXPECT_EQ(runtime("cudaEventCreate", &event), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", static_cast<void*>(nullptr), 0),
              900);  // not the default stream
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, 0), 0);
    EXPECT_EQ(launch(runtime, main), 0);
    EXPECT_EQ(runtime("cudaEventRecord", event, main), 0);
    EXPECT_EQ(runtime("cudaStreamWaitEvent", side, event, 0U), 0);
    EXPECT_EQ(status(side), 1);  // it joined
    EXPECT_EQ(launch(runtime, side), 0);
    EXPECT_EQ(runtime("cudaEventRecord", event, side), 0);
    EXPECT_EQ(runtime("cudaStreamWaitEvent", main, event, 0U), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), 0);
    EXPECT_EQ(status(side), 0);
    size_t nodes = 0;
    EXPECT_EQ(runtime("cudaGraphGetNodes", graph, static_cast<void*>(nullptr), &nodes), 0);
    EXPECT_EQ(nodes, 2U);
    EXPECT_EQ(runtime("cudaGraphInstantiateWithFlags", &execution, graph, uint64_t(0)), 0);
    EXPECT_EQ(runtime("cudaGraphDestroy", graph), 0);
    const uint64_t before = driver.count("kernels");
    EXPECT_EQ(runtime("cudaGraphLaunch", execution, main), 0);
    EXPECT_EQ(driver.count("kernels") - before, 2U);
    EXPECT_EQ(runtime("cudaGraphExecDestroy", execution), 0);
    EXPECT_EQ(runtime("cudaGraphLaunch", execution, main), 1);
  });
}

TEST(Capture, IsSpoiltByAWait) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *stream = nullptr, *graph = nullptr;
    EXPECT_EQ(runtime("cudaStreamCreate", &stream), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", stream, 0), 0);
    EXPECT_EQ(runtime("cudaStreamSynchronize", stream), 900);
    EXPECT_EQ(runtime("cudaStreamEndCapture", stream, &graph), 901);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(runtime("cudaStreamSynchronize", stream), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", stream, &graph), 401);  // none was begun
  });
}

// Work of `side` comes after that of `main`.
void follow(const Library& runtime, void* side, void* main) {
  void* const event = make_event(runtime);
  EXPECT_EQ(runtime("cudaEventRecord", event, main), 0);
  EXPECT_EQ(runtime("cudaStreamWaitEvent", side, event, 0U), 0);
}

TEST(Capture, EveryStreamMustComeBack) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *const main = make_stream(runtime), *const side = make_stream(runtime), *graph = nullptr;
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    EXPECT_EQ(launch(runtime, main), 0);
    follow(runtime, side, main);
    EXPECT_EQ(launch(runtime, side), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", side, &graph), kUnmatched);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), kUnjoined);
    EXPECT_EQ(graph, nullptr);
    // One that only waited has nothing that must come back.
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    EXPECT_EQ(launch(runtime, main), 0);
    follow(runtime, side, main);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), 0);
  });
}

TEST(Capture, DependsOnlyOnWhatIsInIt) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *const main = make_stream(runtime), *const other = make_stream(runtime), *graph = nullptr;
    void* const before = make_event(runtime);
    EXPECT_EQ(runtime("cudaEventRecord", before, other), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    EXPECT_EQ(runtime("cudaStreamWaitEvent", main, before, 0U), kIsolation);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), kInvalidated);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", other, kGlobal), 0);
    void* const within = make_event(runtime);
    EXPECT_EQ(runtime("cudaEventRecord", within, main), 0);
    EXPECT_EQ(runtime("cudaStreamWaitEvent", other, within, 0U), kMerge);
    EXPECT_EQ(runtime("cudaEventQuery", within), kUnsupported);  // in this mode nobody may ask
    int relaxed = kRelaxed;
    EXPECT_EQ(runtime("cudaThreadExchangeStreamCaptureMode", &relaxed), 0);
    EXPECT_EQ(runtime("cudaEventQuery", within), kCapturedEvent);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), kInvalidated);
    EXPECT_EQ(runtime("cudaStreamEndCapture", other, &graph), kInvalidated);
  });
}

TEST(Capture, TheLegacyStreamWouldWaitForABlockingOne) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *blocking = nullptr, *const other = make_stream(runtime), *graph = nullptr, *const legacy = nullptr;
    EXPECT_EQ(runtime("cudaStreamCreate", &blocking), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", other, kGlobal), 0);
    EXPECT_EQ(launch(runtime, legacy), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", other, &graph), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", blocking, kGlobal), 0);
    EXPECT_EQ(launch(runtime, legacy), kImplicit);
    EXPECT_EQ(runtime("cudaStreamEndCapture", blocking, &graph), kInvalidated);
  });
}

// What cudaMalloc gives in this thread and in another while a stream captures in this mode, and what the end of the capture gives.
struct Gives {
  int here, elsewhere, end;
};
void check_mode(int mode, Gives gives) {
  check({}, [&] {
    const Library runtime("libcudart.so.13");
    void *const stream = make_stream(runtime), *graph = nullptr;
    const auto allocate = [&] {
      void* address = nullptr;
      return runtime("cudaMalloc", &address, kMiB);
    };
    EXPECT_EQ(runtime("cudaStreamBeginCapture", stream, mode), 0);
    int relaxed = kRelaxed;
    EXPECT_EQ(runtime("cudaThreadExchangeStreamCaptureMode", &relaxed), 0);
    EXPECT_EQ(relaxed, kGlobal);  // what it was
    EXPECT_EQ(allocate(), 0);     // a thread that says so may
    EXPECT_EQ(runtime("cudaThreadExchangeStreamCaptureMode", &relaxed), 0);
    std::thread([&] { EXPECT_EQ(allocate(), gives.elsewhere); }).join();
    EXPECT_EQ(runtime("cudaStreamEndCapture", stream, &graph), gives.end);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", stream, mode), 0);
    EXPECT_EQ(allocate(), gives.here);
  });
}

TEST(Capture, ModesSayWhoMayAllocateMeanwhile) {
  check_mode(kGlobal, {kUnsupported, kUnsupported, kInvalidated});
  check_mode(kThreadLocal, {kUnsupported, 0, 0});
  check_mode(kRelaxed, {0, 0, 0});
}

TEST(Capture, IsEndedByTheThreadThatBeganItUnlessItIsRelaxed) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    for (const auto& [mode, gives] :
         {std::pair(kGlobal, kWrongThread), {kThreadLocal, kWrongThread}, {kRelaxed, 0}}) {
      void *const stream = make_stream(runtime), *graph = nullptr;
      EXPECT_EQ(runtime("cudaStreamBeginCapture", stream, mode), 0);
      std::thread([&, gives = gives] {
        EXPECT_EQ(runtime("cudaStreamEndCapture", stream, &graph), gives);
      }).join();
    }
  });
}

TEST(Capture, AStreamThatIsDestroyedEndsIt) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *const main = make_stream(runtime), *const side = make_stream(runtime);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    follow(runtime, side, main);
    EXPECT_EQ(runtime("cudaStreamDestroy", main), 0);
    EXPECT_EQ(launch(runtime, side), kInvalidated);
    EXPECT_EQ(launch(runtime, nullptr), 0);
  });
}

using Nodes = std::vector<void*>;

Nodes nodes_of(const Library& runtime, const char* function, void* owner) {
  size_t count = 0;
  EXPECT_EQ(runtime(function, owner, static_cast<void**>(nullptr), &count), 0);
  Nodes out(count + 1, &count);
  ++count;
  EXPECT_EQ(runtime(function, owner, out.data(), &count), 0);
  EXPECT_EQ(out.back(), nullptr);  // beyond what there is
  out.pop_back();
  EXPECT_EQ(count, out.size());
  return out;
}

Nodes dependencies(const Library& runtime, const char* function, void* node) {
  size_t count = 0;
  void** const none = nullptr;
  uint64_t* const no_edges = nullptr;
  EXPECT_EQ(runtime(function, node, none, no_edges, &count), 0);
  Nodes out(count);
  std::vector<uint64_t> edges(count, 1);
  EXPECT_EQ(runtime(function, node, out.data(), edges.data(), &count), 0);
  for (const uint64_t edge : edges) EXPECT_EQ(edge, 0U);
  return out;
}

TEST(Graphs, NodesHaveKindsAndDependencies) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *const main = make_stream(runtime), *const side = make_stream(runtime), *graph = nullptr;
    void* address = nullptr;
    EXPECT_EQ(runtime("cudaMalloc", &address, kMiB), 0);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", main, kGlobal), 0);
    EXPECT_EQ(runtime("cudaMemsetAsync", address, 0, size_t(512), main), 0);
    follow(runtime, side, main);
    EXPECT_EQ(launch(runtime, main), 0);
    EXPECT_EQ(launch(runtime, side), 0);
    follow(runtime, main, side);
    int status = 0;
    uint64_t id = 0;
    void *captured = nullptr, **last = nullptr, *edges = nullptr;
    size_t count = 0;
    EXPECT_EQ(runtime("cudaStreamGetCaptureInfo", main, &status, &id, &captured, &last, &edges, &count), 0);
    EXPECT_EQ(count, 2U);  // the stream's own kernel, and the other's
    void* empty = nullptr;
    EXPECT_EQ(runtime("cudaGraphAddEmptyNode", &empty, captured, last, count), 0);
    EXPECT_EQ(runtime("cudaStreamUpdateCaptureDependencies", main, &empty, static_cast<void*>(nullptr),
                      size_t(1), 1U),
              0);
    EXPECT_EQ(launch(runtime, main), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", main, &graph), 0);
    EXPECT_EQ(graph, captured);
    const Nodes nodes = nodes_of(runtime, "cudaGraphGetNodes", graph);
    ASSERT_EQ(nodes.size(), 5U);
    const int kinds[] = {2, 0, 0, 5, 0};  // a fill, two kernels, the empty one, a kernel
    for (size_t i = 0; i < nodes.size(); ++i) {
      int kind = -1;
      EXPECT_EQ(runtime("cudaGraphNodeGetType", nodes[i], &kind), 0);
      EXPECT_EQ(kind, kinds[i]);
    }
    EXPECT_EQ(nodes_of(runtime, "cudaGraphGetRootNodes", graph), Nodes{nodes[0]});
    const char *const before = "cudaGraphNodeGetDependencies", *const after =
                                                                   "cudaGraphNodeGetDependentNodes";
    EXPECT_EQ(dependencies(runtime, before, nodes[0]), Nodes());
    EXPECT_EQ(dependencies(runtime, after, nodes[0]), (Nodes{nodes[1], nodes[2]}));
    EXPECT_EQ(dependencies(runtime, before, nodes[3]), (Nodes{nodes[1], nodes[2]}));
    EXPECT_EQ(dependencies(runtime, before, nodes[4]), Nodes{nodes[3]});
  });
}

TEST(Graphs, AreMadeByHandWithoutCircles) {
  check({}, [] {
    const Library runtime("libcudart.so.12");
    void *graph = nullptr, *first = nullptr, *second = nullptr, **const none = nullptr;
    EXPECT_EQ(runtime("cudaGraphCreate", &graph, 0U), 0);
    EXPECT_EQ(runtime("cudaGraphAddEmptyNode", &first, graph, none, size_t(0)), 0);
    EXPECT_EQ(runtime("cudaGraphAddEmptyNode", &second, graph, &first, size_t(1)), 0);
    EXPECT_EQ(runtime("cudaGraphAddDependencies", graph, &second, &first, size_t(1)), 1);
    size_t count = 0;
    EXPECT_EQ(runtime("cudaGraphGetEdges", graph, none, none, &count), 0);
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(runtime("cudaGraphDestroy", graph), 0);
    EXPECT_EQ(runtime("cudaGraphGetNodes", graph, none, &count), 1);
  });
}

TEST(Graphs, AreWrittenForGraphviz) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("emulator-graph-" + std::to_string(getpid()) + ".dot");
  check({}, [&] {
    const Library runtime("libcudart.so.13");
    void *graph = nullptr, *const stream = make_stream(runtime);
    EXPECT_EQ(runtime("cudaStreamBeginCapture", stream, kGlobal), 0);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(runtime("cudaStreamEndCapture", stream, &graph), 0);
    EXPECT_EQ(runtime("cudaGraphDebugDotPrint", graph, path.c_str(), 1U), 0);
    EXPECT_EQ(runtime("cudaGraphDebugDotPrint", graph, "/no/such/folder/graph.dot", 1U), 304);
  });
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_EQ(text.str(),
            "digraph dot {\n"
            "  node_0 [shape=record, label=\"{KERNEL | 0}\"];\n"
            "  node_1 [shape=record, label=\"{KERNEL | 1}\"];\n"
            "  node_0 -> node_1;\n"
            "}\n");
}

}  // namespace
}  // namespace emulated
