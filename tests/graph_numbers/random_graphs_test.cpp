// Random graphs compute the same compiled as called one by one: outputs, gradients, and for some second gradients.
// Every pass is verified on the way.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "meta/ops/all.h"
#include "step/compiled/ir/text.h"
#include "tests/graph_numbers/run_graph.h"

namespace metaprof::ir {
namespace {

int how_many_graphs() {
  if (const char* given = std::getenv("METAPROF_GRAPHS")) return std::atoi(given);
#ifdef METAPROF_ADDRESS_SANITIZER
  return 500;
#else
  return 1000;  // METAPROF_GRAPHS=10000 for all
#endif
}

// Writes a graph as a text. Tensors are f64[3,3], so that every operator takes every value; now and then a row, f64[3],
// is broadcast.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {}

  std::string text() {
    const int inputs = 2 + below(2);
    gradients_ = below(10) > 0;
    std::string text = "graph(";
    for (int i = 0; i < inputs; ++i) {
      const bool requires_grad = gradients_ && (i == 0 || below(3) > 0);
      text += fmt::format("{}%x{}: Tensor(f64[3,3] cpu{})", i ? ", " : "", i, requires_grad ? " grad" : "");
      known_.push_back(fmt::format("%x{}", i));
    }
    text += fmt::format(", %b: Tensor(f64[3] cpu{}), %n: int, %c: bool) {{\n",
                        gradients_ && below(2) ? " grad" : "");
    body(text, 2 + below(9), 1);
    text += "  -> (" + known_.back();
    if (below(3) == 0) text += ", " + any();
    return text + ")\n}\n";
  }
  int64_t trips() { return below(11); }
  bool condition() { return below(2) == 0; }

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  const std::string& any() { return known_[size_t(below(int(known_.size())))]; }
  // Later values more often: graphs are deep rather than wide.
  const std::string& recent() { return below(2) ? known_.back() : any(); }
  std::string fresh() { return fmt::format("%v{}", made_++); }

  void body(std::string& text, int nodes, int depth) {
    for (int i = 0; i < nodes; ++i) {
      const int kind = below(100);
      if (kind < 6 && depth < 3)
        branch(text, depth);
      else if (kind < 11 && depth < 3)
        loop(text, depth);
      else
        call(text, depth);
    }
  }

  static std::string indent(int depth) { return std::string(size_t(depth) * 2, ' '); }

  void call(std::string& text, int depth) {
    static constexpr const char* kOne[] = {"relu", "tanh", "sigmoid", "neg",  "sin",
                                           "cos",  "t",    "abs",     "gelu", "silu"};
    static constexpr const char* kTwo[] = {"add.Tensor", "sub.Tensor", "mul.Tensor"};
    std::string made;
    switch (below(8)) {
      case 0:
        made = fmt::format("aten::{}({}, {})", kTwo[below(3)], recent(), below(3) ? any() : row(text, depth));
        break;
      case 1: made = fmt::format("aten::{}({}, {})", kTwo[below(3)], any(), recent()); break;
      case 2: made = fmt::format("aten::mul.Scalar({}, {})", recent(), 0.25 * (1 + below(4))); break;
      case 3: made = fmt::format("aten::add.Scalar({}, {})", recent(), below(3)); break;
      case 4:
        made = below(2) ? fmt::format("aten::mm({}, {})", recent(), any())
                        : fmt::format("aten::softmax.int({}, 1)", recent());
        break;
      case 5:
        if (below(2)) return list(text, depth);
        made = fmt::format("aten::linear({}, {}, None)", recent(), any());
        break;
      default: made = fmt::format("aten::{}({})", kOne[below(10)], recent()); break;
    }
    // Values stay small: what grows is bounded now and then.
    const std::string name = fresh();
    text += indent(depth) + name + " = " + made + "\n";
    known_.push_back(name);
    if (!gradients_ && below(6) == 0) {
      const std::string written = fresh();
      text += fmt::format("{}{} = aten::mul_.Scalar({}, 0.5)\n", indent(depth), written, name);
      known_.push_back(written);
    }
    if (below(3) == 0) {
      const std::string bounded = fresh();
      text += fmt::format("{}{} = aten::tanh({})\n", indent(depth), bounded, name);
      known_.push_back(bounded);
    }
  }

  // The broadcast input, or what is computed from it.
  std::string row(std::string& text, int depth) {
    if (below(2)) return "%b";
    std::string made = fresh();
    text += fmt::format("{}{} = aten::{}(%b)\n", indent(depth), made, below(2) ? "tanh" : "neg");
    return made;
  }

  void list(std::string& text, int depth) {
    const std::string joined = fresh(), parts = fresh(), first = fresh(), second = fresh();
    const bool chunks = below(2) > 0;
    text += fmt::format("{}{} = aten::cat([{}, {}], 0)\n", indent(depth), joined, recent(), any());
    if (chunks) {
      text += fmt::format("{}{} = aten::chunk({}, 2, 0)\n", indent(depth), parts, joined);
    } else {
      text += fmt::format("{}{} = aten::split_with_sizes({}, [3, 3], 0)\n", indent(depth), parts, joined);
    }
    text +=
        fmt::format("{}{}: Tensor, {}: Tensor = prim::ListUnpack({})\n", indent(depth), first, second, parts);
    if (!chunks) {
      known_.push_back(first);
      known_.push_back(second);
      return;
    }
    // A chunk without a gradient is an error.
    const std::string sum = fresh();
    text += fmt::format("{}{} = aten::add.Tensor({}, {})\n", indent(depth), sum, first, second);
    known_.push_back(sum);
  }

  std::string block(std::string& text, int depth) {
    const size_t outside = known_.size();
    body(text, 1 + below(3), depth + 1);
    std::string result = recent();
    known_.resize(outside);
    return result;
  }

  void branch(std::string& text, int depth) {
    const std::string name = fresh();
    text += fmt::format("{}{}: Tensor = prim::If(%c) {{\n", indent(depth), name);
    for (const char* end : {"} {", "}"}) {
      const std::string result = block(text, depth);
      text += fmt::format("{}-> ({})\n{}{}\n", indent(depth + 1), result, indent(depth), end);
    }
    known_.push_back(name);
  }

  void loop(std::string& text, int depth) {
    const std::string name = fresh(), inside = fresh(), bounded = fresh();
    text += fmt::format("{}{}: Tensor = prim::Loop({}, True, {}) {{ ({}: int, {}: Tensor)\n", indent(depth),
                        name, below(2) ? "%n" : std::to_string(below(4)), recent(), fresh(), inside);
    known_.push_back(inside);
    const std::string result = block(text, depth);
    known_.pop_back();
    text += fmt::format("{}{} = aten::tanh({})\n", indent(depth + 1), bounded, result);
    text += fmt::format("{}-> (True, {})\n{}}}\n", indent(depth + 1), bounded, indent(depth));
    known_.push_back(name);
  }

  std::mt19937_64 random_;
  std::vector<std::string> known_;
  bool gradients_ = true;
  int made_ = 0;
};

TEST(RandomGraphs, ComputeTheSameCompiledAsOneByOne) {
  const int graphs = how_many_graphs();
  int compared = 0;
  for (int seed = 0; seed < graphs; ++seed) {
    RandomGraph random{uint64_t(seed)};
    const std::string text = random.text();
    const auto graph = parse_graph(text, standard_registry());
    const std::vector<int64_t> integers = {random.trips(), random.condition()};
    ExecutorOptions options = test_options();
    options.compile.without_inlining = seed % 3 == 0;
    GraphExecutor compiled(graph, options), plain(graph, test_options(false));
    GraphRun a{uint64_t(seed)}, b{uint64_t(seed)};
    const GraphResult found = a.run(compiled, a.arguments(*graph, integers));
    const GraphResult expected = b.run(plain, b.arguments(*graph, integers));
    ASSERT_EQ(expected.error, "") << text;
    ASSERT_EQ(difference(found, expected), "") << "graph " << seed << "\n"
                                               << text << "\n"
                                               << explain(compiled);
    compared += !expected.gradients.empty();
  }
  EXPECT_GT(compared, graphs / 2);
}

}  // namespace
}  // namespace metaprof::ir
