#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

using Integers = std::vector<int64_t>;

// Descriptors of the backend API, by cuDNN's numbers.
class Backend {
 public:
  void* make(int kind) const {
    void* out = nullptr;
    EXPECT_EQ(cudnn_("cudnnBackendCreateDescriptor", kind, &out), 0);
    return out;
  }
  void set(void* to, int name, const Integers& values) const {
    put(to, name, 3, values.size(), values.data());
  }
  void set(void* to, int name, int enumeration) const { put(to, name, 1, 1, &enumeration); }
  void set(void* to, int name, void* descriptor) const { put(to, name, 15, 1, &descriptor); }
  void* tensor(const Integers& sizes, const Integers& strides) const {
    void* const t = make(29);
    set(t, 901, 0);  // fp32
    set(t, 902, sizes);
    set(t, 903, strides);
    return t;
  }
  int64_t get(void* from, int name) const {
    int64_t count = 0, value = -1;
    EXPECT_EQ(
        cudnn_("cudnnBackendGetAttribute", from, name, 3, int64_t(1), &count, static_cast<void*>(&value)), 0);
    return value;
  }
  /// What the plan of the heuristics' first engine takes.
  int64_t planned(void* graph) const {
    void *const heuristics = make(4), *configuration = make(3), *const plan = make(5);
    set(heuristics, 201, graph);
    int64_t count = 0;
    EXPECT_EQ(cudnn_("cudnnBackendGetAttribute", heuristics, 202, 15, int64_t(1), &count,
                     static_cast<void*>(&configuration)),
              0);
    EXPECT_EQ(count, 1);
    set(plan, 401, configuration);
    EXPECT_EQ(cudnn_("cudnnBackendFinalize", plan), 0);
    return get(plan, 402);
  }
  /// What the plans of the fallback engines take, one after the other, until one cannot be made.
  Integers planned_as_fallbacks(void* graph) const {
    constexpr int64_t most = 20;
    void* const heuristics = make(4);
    set(heuristics, 201, graph);
    constexpr int fallback = 2;
    put(heuristics, 200, 8, 1, &fallback);
    std::array<void*, most> configurations{};
    for (void*& configuration : configurations) configuration = make(3);
    int64_t count = 0;
    EXPECT_EQ(cudnn_("cudnnBackendGetAttribute", heuristics, 202, 15, most, &count,
                     static_cast<void*>(configurations.data())),
              0);
    Integers workspaces;
    for (int64_t i = 0; i < count; ++i) {
      void* const plan = make(5);
      set(plan, 401, configurations[size_t(i)]);
      if (cudnn_("cudnnBackendFinalize", plan) != 0) break;
      workspaces.push_back(get(plan, 402));
    }
    return workspaces;
  }
  /// Forward convolution of [8,3,8,8] with [4,3,3,3], stride 1, padding 1 before and `after`.
  void* convolution_graph(int64_t after) const {
    void *const convolution = make(1), *const operation = make(10), *const graph = make(15);
    set(convolution, 100, 0);
    set(convolution, 101, 1);
    set(convolution, 102, Integers{1, 1});
    set(convolution, 103, Integers{1, 1});
    set(convolution, 104, Integers{after, after});
    set(convolution, 105, Integers{1, 1});
    set(operation, 702, convolution);
    set(operation, 703, tensor({4, 3, 3, 3}, {27, 9, 3, 1}));
    set(operation, 704, tensor({8, 3, 8, 8}, {192, 64, 8, 1}));
    set(operation, 705, tensor({8, 4, 8, 8}, {256, 64, 8, 1}));
    set(graph, 801, operation);
    return graph;
  }

 private:
  void put(void* to, int name, int type, size_t count, const void* values) const {
    EXPECT_EQ(cudnn_("cudnnBackendSetAttribute", to, name, type, int64_t(count), values), 0);
  }
  Library cudnn_{"libcudnn.so.9"};
};

TEST(CudnnPlans, TakeNothingWithoutAHelper) {
  check({}, [] {
    const Backend backend;
    EXPECT_EQ(backend.planned(backend.convolution_graph(1)), 0);
  });
}

TEST(CudnnPlans, AreAskedOfTheHelper) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("emulator-cudnn-" + std::to_string(getpid()));
  fs::create_directory(folder);
  std::ofstream(folder / "helper")
      << "#!/bin/sh\nread device\necho ready 91900\nread question\n"
         "[ \"$question\" = 'conv_fwd|fp32|8,3,8,8,|4,3,3,3,|1,1,|1,1,|1,1,|192,64,8,1,|"
         "27,9,3,1,|256,64,8,1,' ] && echo 4096 || echo none\n";
  chmod((folder / "helper").c_str(), 0755);
  const std::string words = "helper=" + (folder / "helper").string() + "\nlibrary=l\ndriver=d\ndevice={}\n";
  check({{"METAPROF_EMULATOR_CUDNN", words}}, [] {
    const Backend backend;
    EXPECT_EQ(backend.planned(backend.convolution_graph(1)), 4096);
    EXPECT_EQ(backend.planned(backend.convolution_graph(1)), 4096);  // asked once
    EXPECT_EQ(backend.planned(backend.convolution_graph(2)), 0);  // not a convolution that it has words for
  });
  fs::remove_all(folder);
}

// PyTorch tries them when memory runs out for the workspace of the first.
TEST(CudnnPlans, FallbacksHaveLessAndLess) {
  namespace fs = std::filesystem;
  const fs::path helper =
      fs::temp_directory_path() / ("emulator-cudnn-fallbacks-" + std::to_string(getpid()));
  std::ofstream(helper) << "#!/bin/sh\nread device\necho ready 91900\n"
                           "while read question; do case \"$question\" in\n"
                           "'skip 1 conv_fwd'*) echo 1024;; 'skip 2 conv_fwd'*) echo 0;; skip*) echo none;;\n"
                           "*) echo 4096;; esac; done\n";
  chmod(helper.c_str(), 0755);
  check({{"METAPROF_EMULATOR_CUDNN", "helper=" + helper.string() + "\nlibrary=l\ndriver=d\ndevice={}\n"}},
        [] {
          const Backend backend;
          EXPECT_EQ(backend.planned(backend.convolution_graph(1)), 4096);
          EXPECT_EQ(backend.planned_as_fallbacks(backend.convolution_graph(1)), (Integers{1024, 0}));
          EXPECT_EQ(backend.planned_as_fallbacks(backend.convolution_graph(2)),
                    (Integers{0}));  // has no workspace
        });
  fs::remove(helper);
}

TEST(CudnnPlans, CountAsNothingWhereTheHelperFails) {
  const Outcome missing =
      run({{"METAPROF_EMULATOR_CUDNN", "helper=/no/such\nlibrary=l\ndriver=d\ndevice={}"}}, [] {
        const Backend backend;
        EXPECT_EQ(backend.planned(backend.convolution_graph(1)), 0);
      });
  EXPECT_EQ(missing.exit_code, 0);
  EXPECT_EQ(missing.errors,
            "metaprof emulator: cuDNN's plans are not known, their workspaces count as 0: /no/such: No such "
            "file or "
            "directory\n");
  const Outcome wrong = run({{"METAPROF_EMULATOR_CUDNN", "helper=/bin/true"}}, [] {
    const Backend backend;
    backend.planned(backend.convolution_graph(1));
  });
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.errors, "metaprof emulator: METAPROF_EMULATOR_CUDNN: driver= is missing\n");
}

TEST(CudnnPlans, TheLibraryIsTheInstalledOneWhereNoneIsNamed) {
  namespace fs = std::filesystem;
  const fs::path helper = fs::temp_directory_path() / ("emulator-cudnn-helper-" + std::to_string(getpid()));
  std::ofstream(helper) << "#!/bin/sh\necho error asked for $1\n";
  chmod(helper.c_str(), 0755);
  const Outcome outcome =
      run({{"METAPROF_EMULATOR_CUDNN", "helper=" + helper.string() + "\ndriver=d\ndevice={}"}}, [] {
        const Backend backend;
        backend.planned(backend.convolution_graph(1));
      });
  fs::remove(helper);
  EXPECT_EQ(outcome.errors,  // no PyTorch is loaded
            "metaprof emulator: cuDNN's plans are not known, their workspaces count as 0: asked for "
            "libcudnn.so.9\n");
}

TEST(CudnnRnn, WeightsLieMatricesFirst) {
  check({}, [] {
    const Library cudnn("libcudnn.so.9");
    void *rnn = nullptr, *matrix = nullptr, *bias = nullptr, *const none = nullptr;
    EXPECT_EQ(cudnn("cudnnCreateRNNDescriptor", &rnn), 0);
    EXPECT_EQ(cudnn("cudnnCreateTensorDescriptor", &matrix), 0);
    EXPECT_EQ(cudnn("cudnnCreateTensorDescriptor", &bias), 0);
    constexpr int lstm = 2, with_bias = 3, one_way = 0;
    EXPECT_EQ(cudnn("cudnnSetRNNDescriptor_v8", rnn, 0, lstm, with_bias, one_way, 0, 0, 0, 0, 16, 32, 32, 2,
                    none, 0U),
              0);
    size_t bytes = 0;
    EXPECT_EQ(cudnn("cudnnGetRNNWeightSpaceSize", none, rnn, &bytes), 0);
    // Layer 0: 4 gates of 32x16 and of 32x32; layer 1: 8 of 32x32; biases: 2 layers of 8 times 32.
    EXPECT_EQ(bytes, 4U * (4 * 32 * 16 + 4 * 32 * 32 + 8 * 32 * 32 + 2 * 8 * 32));
    char* const space = reinterpret_cast<char*>(0x1000);
    char *matrix_at = nullptr, *bias_at = nullptr;
    EXPECT_EQ(
        cudnn("cudnnGetRNNWeightParams", none, rnn, 1, bytes, space, 0, matrix, &matrix_at, bias, &bias_at),
        0);
    EXPECT_EQ(matrix_at - space, 4 * (4 * 32 * 16 + 4 * 32 * 32));
    EXPECT_EQ(bias_at - space, 4 * (4 * 32 * 16 + 4 * 32 * 32 + 8 * 32 * 32 + 8 * 32));
    for (void* tensor : {matrix, bias}) EXPECT_EQ(cudnn("cudnnDestroyTensorDescriptor", tensor), 0);
    EXPECT_EQ(cudnn("cudnnDestroyRNNDescriptor", rnn), 0);
  });
}

}  // namespace
}  // namespace emulated
