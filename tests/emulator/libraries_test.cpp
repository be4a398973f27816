#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

namespace fs = std::filesystem;

TEST(Libraries, ExportEveryNameWithTheVersionOfTheirSoname) {
  int libraries = 0;
  for (const auto& entry : fs::directory_iterator("capture/emulator/symbols")) {
    const std::string soname = entry.path().stem().string();
    const bool plain = soname == "libcuda.so.1" || soname == "libnvidia-ml.so.1" || soname == "libnccl.so.2";
    const Library library(soname);
    std::ifstream names(entry.path());
    for (std::string name; std::getline(names, name);)
      EXPECT_NE(plain ? library.find(name.c_str()) : library.find(name.c_str(), soname.c_str()), nullptr)
          << name << " in " << soname;
    ++libraries;
  }
  EXPECT_EQ(libraries, 22);
}

TEST(Libraries, AFunctionThatIsNotThereSaysItsNameOnce) {
  const Outcome outcome = run({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    EXPECT_EQ(runtime("cudaMallocArray"), 801);
    EXPECT_EQ(runtime("cudaMallocArray"), 801);
    EXPECT_EQ(driver.count("missing"), 2U);
  });
  EXPECT_EQ(outcome.errors, "metaprof emulator: libcudart.so.13 has no cudaMallocArray; the call fails\n");
}

TEST(Libraries, SayTheVersionsThatAreAskedFor) {
  check({{"METAPROF_EMULATOR_VERSIONS", "cudnn=9.1.0 runtime=12.4.127 nccl=2.21.5"}}, [] {
    const Library runtime("libcudart.so.12"), cudnn("libcudnn.so.9"), nccl("libnccl.so.2");
    int version = 0;
    EXPECT_EQ(runtime("cudaRuntimeGetVersion", &version), 0);
    EXPECT_EQ(version, 12040);
    EXPECT_EQ(cudnn("cudnnGetVersion"), 90100);
    EXPECT_EQ(nccl("ncclGetVersion", &version), 0);
    EXPECT_EQ(version, 22105);
  });
}

TEST(Cublas, KeepsWhatIsSet) {
  check({}, [] {
    for (const char* soname : {"libcublas.so.12", "libcublas.so.13"}) {
      const Library cublas(soname), runtime("libcudart.so.13");
      void *handle = nullptr, *stream = nullptr;
      int mode = -1;
      EXPECT_EQ(cublas("cublasCreate_v2", &handle), 0);
      void* const own = make_stream(runtime);
      EXPECT_EQ(cublas("cublasSetStream_v2", handle, own), 0);
      EXPECT_EQ(cublas("cublasGetStream_v2", handle, &stream), 0);
      EXPECT_EQ(stream, own);
      EXPECT_EQ(cublas("cublasSetPointerMode_v2", handle, 1), 0);
      EXPECT_EQ(cublas("cublasGetPointerMode_v2", handle, &mode), 0);
      EXPECT_EQ(mode, 1);
      EXPECT_EQ(cublas("cublasSgemm_v2", handle), 0);
      EXPECT_EQ(runtime("cudaStreamDestroy", own), 0);
      EXPECT_EQ(cublas("cublasSgemm_v2", handle), 13);  // the stream takes no work
      EXPECT_EQ(cublas("cublasDestroy_v2", handle), 0);
    }
  });
}

TEST(CublasLt, OneAlgorithmWithoutWorkspace) {
  check({}, [] {
    const Library lt("libcublasLt.so.13");
    unsigned char results[2][96];
    std::memset(results, 7, sizeof results);
    int found = 0;
    void* const none = nullptr;
    EXPECT_EQ(lt("cublasLtMatmulAlgoGetHeuristic", none, none, none, none, none, none, none, 2,
                 static_cast<void*>(results), &found),
              0);
    EXPECT_EQ(found, 1);
    size_t workspace = 1;
    std::memcpy(&workspace, results[0] + 64, sizeof workspace);
    EXPECT_EQ(workspace, 0U);
    EXPECT_EQ(results[1][0], 7);
  });
}

TEST(Cusolver, NeedsNoWorkspace) {
  check({}, [] {
    const Library cusolver("libcusolver.so.12");
    void* const none = nullptr;
    int size = 77;
    EXPECT_EQ(cusolver("cusolverDnSgetrf_bufferSize", none, 8, 8, none, 8, &size), 0);
    EXPECT_EQ(size, 0);
    // Behind the six arguments that registers hold.
    size = 77;
    EXPECT_EQ(cusolver("cusolverDnDsyevd_bufferSize", none, 0, 0, 8, none, 8, none, &size), 0);
    EXPECT_EQ(size, 0);
    size_t device = 77, host = 77;
    EXPECT_EQ(cusolver("cusolverDnXpotrf_bufferSize", none, none, 0, int64_t(8), 0, none, int64_t(8), 0,
                       &device, &host),
              0);
    EXPECT_EQ(device + host, 0U);
  });
}

TEST(Cusparse, AMatrixKeepsItsSizes) {
  check({}, [] {
    const Library cusparse("libcusparse.so.12");
    void* matrix = nullptr;
    EXPECT_EQ(cusparse("cusparseCreateCsr", &matrix, int64_t(5), int64_t(6), int64_t(7)), 0);
    int64_t rows = 0, columns = 0, elements = 0;
    EXPECT_EQ(cusparse("cusparseSpMatGetSize", matrix, &rows, &columns, &elements), 0);
    EXPECT_EQ(rows * 100 + columns * 10 + elements, 567);
    EXPECT_EQ(cusparse("cusparseDestroySpMat", matrix), 0);
  });
}

struct UniqueId {
  char bytes[128];
};

TEST(Nccl, OneRankOf1024) {
  check({}, [] {
    const Library nccl("libnccl.so.2"), driver("libcuda.so.1");
    UniqueId id;
    EXPECT_EQ(nccl("ncclGetUniqueId", &id), 0);
    void* communicator = nullptr;
    EXPECT_EQ(nccl("ncclCommInitRank", &communicator, 1024, id, 1023), 0);
    int ranks = 0, rank = 0;
    EXPECT_EQ(nccl("ncclCommCount", communicator, &ranks), 0);
    EXPECT_EQ(nccl("ncclCommUserRank", communicator, &rank), 0);
    EXPECT_EQ(ranks, 1024);
    EXPECT_EQ(rank, 1023);
    void* const nothing = nullptr;
    EXPECT_EQ(nccl("ncclAllReduce", nothing, nothing, size_t(10), 7, 0, communicator, nothing), 0);
    EXPECT_EQ(driver.count("collectives"), 1U);
    void* part = communicator;
    EXPECT_EQ(nccl("ncclCommSplit", communicator, -1, 0, &part, nothing), 0);  // in none of the new ones
    EXPECT_EQ(part, nullptr);
    EXPECT_EQ(nccl("ncclCommInitRank", &part, 4, id, 4), 4);  // there is no rank 4 of 4
    EXPECT_EQ(nccl("ncclCommDestroy", communicator), 0);
  });
}

// What the host wrote comes back from a collective as if every rank had written it; else device memory reads as zero.
TEST(Nccl, OtherRanksHaveWhatThisOneHas) {
  check({}, [] {
    const Library nccl("libnccl.so.2"), runtime("libcudart.so.13");
    void *communicator = nullptr, *from = nullptr, *to = nullptr, *const stream = nullptr;
    EXPECT_EQ(nccl("ncclCommInitRank", &communicator, 4, UniqueId{}, 1), 0);
    EXPECT_EQ(runtime("cudaMalloc", &from, size_t(512)), 0);
    EXPECT_EQ(runtime("cudaMalloc", &to, size_t(512)), 0);
    const auto read = [&](void* address, size_t index) {
      int64_t value = -1;
      EXPECT_EQ(runtime("cudaMemcpy", static_cast<void*>(&value),
                        static_cast<const void*>(static_cast<int64_t*>(address) + index), sizeof value, 2),
                0);
      return value;
    };
    const int64_t number = 5;
    constexpr int i64 = 4, add = 0, greatest = 2;
    EXPECT_EQ(runtime("cudaMemcpy", from, static_cast<const void*>(&number), sizeof number, 1), 0);
    EXPECT_EQ(read(from, 0), 0);
    EXPECT_EQ(nccl("ncclAllGather", from, to, size_t(1), i64, communicator, stream), 0);
    EXPECT_EQ(read(to, 3), 5);
    EXPECT_EQ(read(to, 4), 0);  // there are 4 ranks
    // A framework may copy it on.
    void* const copy = static_cast<char*>(from) + 256;
    EXPECT_EQ(runtime("cudaMemcpy", copy, static_cast<const void*>(to), size_t(8), 3), 0);
    EXPECT_EQ(read(copy, 0), 5);
    EXPECT_EQ(nccl("ncclAllReduce", from, to, size_t(1), i64, add, communicator, stream), 0);
    EXPECT_EQ(read(to, 0), 20);
    EXPECT_EQ(nccl("ncclAllReduce", from, to, size_t(1), i64, greatest, communicator, stream), 0);
    EXPECT_EQ(read(to, 0), 5);
    EXPECT_EQ(runtime("cudaMemset", to, 0, size_t(8)), 0);
    EXPECT_EQ(read(to, 0), 0);
  });
}

TEST(Nvrtc, EveryProgramCompiles) {
  check({}, [] {
    const Library nvrtc("libnvrtc.so.12");
    void* program = nullptr;
    EXPECT_EQ(nvrtc("nvrtcCreateProgram", &program, "text"), 0);
    EXPECT_EQ(nvrtc("nvrtcCompileProgram", program, 0, static_cast<void*>(nullptr)), 0);
    size_t bytes = 0;
    EXPECT_EQ(nvrtc("nvrtcGetPTXSize", program, &bytes), 0);
    EXPECT_EQ(bytes, 16U);
  });
}

TEST(Nvml, KnowsTheMemoryInUse) {
  check({{"METAPROF_EMULATOR_GPUS", "2"}}, [] {
    const Library nvml("libnvidia-ml.so.1"), runtime("libcudart.so.13");
    void* address = nullptr;
    EXPECT_EQ(runtime("cudaSetDevice", 1), 0);
    EXPECT_EQ(runtime("cudaMalloc", &address, 5 * kMiB), 0);
    uintptr_t handle = 0;
    uint64_t memory[3] = {};
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", 1U, &handle), 0);
    EXPECT_EQ(nvml("nvmlDeviceGetMemoryInfo", handle, memory), 0);
    EXPECT_EQ(memory[0], 150121480192U);
    EXPECT_EQ(memory[2], 5 * kMiB);
    EXPECT_EQ(nvml("nvmlDeviceGetHandleByIndex_v2", 2U, &handle), 2);
  });
}

}  // namespace
}  // namespace emulated
