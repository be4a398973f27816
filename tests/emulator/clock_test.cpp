#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

constexpr int kNotReady = 600;
const Environment kLate = {{"METAPROF_EMULATOR_CLOCK", "late"}};

TEST(Clock, AtOnceEverythingIsCompleteWhenItIsGiven) {
  check({{"METAPROF_EMULATOR_CLOCK", "at-once"}}, [] {
    const Library runtime("libcudart.so.13");
    void *const stream = make_stream(runtime), *const event = make_event(runtime);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(runtime("cudaEventRecord", event, stream), 0);
    EXPECT_EQ(runtime("cudaEventQuery", event), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", stream), 0);
  });
}

TEST(Clock, LateNothingIsCompleteBeforeSomebodyWaits) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13");
    void *const stream = make_stream(runtime), *const early = make_event(runtime),
                *const late = make_event(runtime);
    EXPECT_EQ(runtime("cudaEventQuery", early), 0);  // never recorded
    EXPECT_EQ(runtime("cudaStreamQuery", stream), 0);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(runtime("cudaEventRecord", early, stream), 0);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(runtime("cudaEventRecord", late, stream), 0);
    EXPECT_EQ(runtime("cudaEventQuery", early), kNotReady);
    EXPECT_EQ(runtime("cudaGetLastError"), 0);  // which is no error
    float milliseconds = 0;
    EXPECT_EQ(runtime("cudaEventElapsedTime", &milliseconds, early, late), kNotReady);
    EXPECT_EQ(runtime("cudaEventSynchronize", early), 0);
    EXPECT_EQ(runtime("cudaEventQuery", early), 0);
    EXPECT_EQ(runtime("cudaEventQuery", late), kNotReady);
    EXPECT_EQ(runtime("cudaStreamSynchronize", stream), 0);
    EXPECT_EQ(runtime("cudaEventQuery", late), 0);
  });
}

TEST(Clock, AWaitIsForAllThatCameBefore) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13");
    void *const main = make_stream(runtime), *const side = make_stream(runtime),
                *const other = make_stream(runtime);
    void *const joint = make_event(runtime), *const event = make_event(runtime);
    EXPECT_EQ(launch(runtime, side), 0);
    EXPECT_EQ(runtime("cudaEventRecord", joint, side), 0);
    EXPECT_EQ(runtime("cudaStreamWaitEvent", main, joint, 0U), 0);
    EXPECT_EQ(launch(runtime, other), 0);
    EXPECT_EQ(runtime("cudaEventRecord", event, main), 0);  // nothing of its own stream, but the other's work
    EXPECT_EQ(runtime("cudaEventQuery", event), kNotReady);
    EXPECT_EQ(runtime("cudaEventSynchronize", event), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", side), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", other), kNotReady);
    EXPECT_EQ(runtime("cudaDeviceSynchronize"), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", other), 0);
  });
}

TEST(Clock, BlockingStreamsAndTheLegacyOneWaitForEachOther) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13");
    void *blocking = nullptr, *const free = make_stream(runtime), *const legacy = nullptr;
    EXPECT_EQ(runtime("cudaStreamCreate", &blocking), 0);
    EXPECT_EQ(launch(runtime, blocking), 0);
    EXPECT_EQ(launch(runtime, free), 0);
    EXPECT_EQ(launch(runtime, legacy), 0);
    EXPECT_EQ(runtime("cudaStreamSynchronize", legacy), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", blocking), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", free), kNotReady);
  });
}

TEST(Clock, CopiesThatTheHostSeesAreWaits) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13");
    void *const stream = make_stream(runtime), *device = nullptr, *pinned = nullptr;
    char pageable[64] = {};
    EXPECT_EQ(runtime("cudaMalloc", &device, size_t(64)), 0);
    EXPECT_EQ(runtime("cudaMallocHost", &pinned, size_t(64)), 0);
    const auto copy = [&](void* to, const void* from) {
      EXPECT_EQ(runtime("cudaMemcpyAsync", to, from, size_t(64), 4, stream), 0);
      return runtime("cudaStreamQuery", stream);
    };
    EXPECT_EQ(copy(device, pinned), kNotReady);
    EXPECT_EQ(copy(pinned, device), kNotReady);
    EXPECT_EQ(copy(pageable, device), 0);
    EXPECT_EQ(launch(runtime, stream), 0);
    EXPECT_EQ(runtime("cudaFreeHost", pinned), 0);  // giving memory back waits for the device
    EXPECT_EQ(runtime("cudaStreamQuery", stream), 0);
  });
}

// Handles of libraries begin with their stream.
TEST(Clock, ProductsAreWork) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13"), blas("libcublas.so.13"), lt("libcublasLt.so.13"),
        dnn("libcudnn.so.9");
    void *const stream = make_stream(runtime), *handle = nullptr, *const none = nullptr;
    const auto is_busy = [&] {
      const bool busy = runtime("cudaStreamQuery", stream) == kNotReady;
      EXPECT_EQ(runtime("cudaStreamSynchronize", stream), 0);
      return busy;
    };
    EXPECT_EQ(blas("cublasCreate_v2", &handle), 0);
    EXPECT_EQ(blas("cublasSetStream_v2", handle, stream), 0);
    for (const char* const product :
         {"cublasCgemm_v2", "cublasGemmGroupedBatchedEx", "cublasDgetrfBatched"}) {
      EXPECT_EQ(blas(product, handle), 0);
      EXPECT_TRUE(is_busy()) << product;
    }
    EXPECT_EQ(blas("cublasSgemm_v2", handle, 0, 0, 8, 8, 8, none, none, 8, none, 8, none, none, 8), 0);
    EXPECT_TRUE(is_busy());
    EXPECT_EQ(blas("cublasSetPointerMode_v2", handle, 0), 0);
    EXPECT_FALSE(is_busy());
    EXPECT_EQ(lt("cublasLtMatmul", none, none, none, none, none, none, none, none, none, none, none, none,
                 none, none, size_t(0), stream),
              0);
    EXPECT_TRUE(is_busy());
    EXPECT_EQ(dnn("cudnnCreate", &handle), 0);
    EXPECT_EQ(dnn("cudnnSetStream", handle, stream), 0);
    constexpr int bad_parameter = 2000, execution_plan = 5;
    EXPECT_EQ(dnn("cudnnBackendExecute", handle, none, none), bad_parameter);
    void* plan = nullptr;
    EXPECT_EQ(dnn("cudnnBackendCreateDescriptor", execution_plan, &plan), 0);
    EXPECT_EQ(dnn("cudnnBackendExecute", handle, plan, none), 0);
    EXPECT_TRUE(is_busy());
  });
}

TEST(Clock, WhoOnlyAsksAgainAndAgainWaits) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13");
    void* const stream = make_stream(runtime);
    EXPECT_EQ(launch(runtime, stream), 0);
    int asked = 0;
    while (runtime("cudaStreamQuery", stream) == kNotReady) ++asked;
    EXPECT_EQ(asked, 19);
  });
}

// A pool keeps at a wait what a stream that nobody waited for still works with.
TEST(Clock, APoolGivesBackWhatItsStreamsAreDoneWith) {
  check(kLate, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    void *const main = make_stream(runtime), *const side = make_stream(runtime), *address = nullptr;
    EXPECT_EQ(runtime("cudaMallocAsync", &address, 40 * kMiB, side), 0);
    EXPECT_EQ(runtime("cudaFreeAsync", address, side), 0);
    EXPECT_EQ(launch(runtime, main), 0);
    EXPECT_EQ(runtime("cudaStreamSynchronize", main), 0);
    EXPECT_EQ(driver.count("memory"), 64 * kMiB);
    EXPECT_EQ(runtime("cudaStreamSynchronize", side), 0);
    EXPECT_EQ(driver.count("memory"), 0U);
  });
}

// ---- the expected clock: work takes its time on the described device

const Environment kExpected = {{"METAPROF_EMULATOR_CLOCK", "expected"}};

// Milliseconds between two events around `work`.
template <class Work>
float milliseconds_of(const Library& runtime, void* stream, Work work) {
  void *const before = make_event(runtime), *const after = make_event(runtime);
  EXPECT_EQ(runtime("cudaEventRecord", before, stream), 0);
  work();
  EXPECT_EQ(runtime("cudaEventRecord", after, stream), 0);
  EXPECT_EQ(runtime("cudaEventSynchronize", after), 0);
  float milliseconds = -1;
  EXPECT_EQ(runtime("cudaEventElapsedTime", &milliseconds, before, after), 0);
  return milliseconds;
}

// The figures beside them are those of a real H200 (tests/measured/h200/rates.json.gz).
TEST(ExpectedClock, WorkTakesWhatTheDeviceNeedsForIt) {
  check(kExpected, [] {
    const Library runtime("libcudart.so.13"), blas("libcublas.so.13");
    void *const stream = make_stream(runtime), *handle = nullptr, *device = nullptr, *pinned = nullptr;
    void* const none = nullptr;
    EXPECT_EQ(blas("cublasCreate_v2", &handle), 0);
    EXPECT_EQ(blas("cublasSetStream_v2", handle, stream), 0);
    const auto product = [&](int type, int n) {
      return milliseconds_of(runtime, stream, [&] {
        EXPECT_EQ(blas("cublasGemmEx", handle, 0, 0, n, n, n, none, none, type, n, none, type, n, none, none,
                       type, n, 68, -1),
                  0);
      });
    };
    constexpr int f32 = 0, bf16 = 14;
    EXPECT_NEAR(product(bf16, 8192), 1.379, 0.001);  // 1.40
    EXPECT_NEAR(product(f32, 4096), 2.749, 0.001);   // 2.79
    const size_t bytes = 256 * kMiB;
    EXPECT_EQ(runtime("cudaMalloc", &device, bytes), 0);
    EXPECT_EQ(runtime("cudaMallocHost", &pinned, bytes), 0);
    const auto copy = [&](void* to, const void* from) {
      return milliseconds_of(runtime, stream, [&] {
        EXPECT_EQ(runtime("cudaMemcpyAsync", to, static_cast<const void*>(from), bytes, 4, stream), 0);
      });
    };
    EXPECT_NEAR(copy(device, pinned), 4.91, 0.01);  // 4.84
    EXPECT_NEAR(copy(pinned, device), 4.91, 0.01);  // 4.85
    // With the 10 microseconds in which the host submits it.
    const float fill = milliseconds_of(
        runtime, stream, [&] { EXPECT_EQ(runtime("cudaMemsetAsync", device, 0, bytes, stream), 0); });
    EXPECT_NEAR(fill, 0.071, 0.001);  // 0.060 without them
  });
}

// The host gives away work without waiting for it; what it does meanwhile takes time, too.
TEST(ExpectedClock, WorkIsCompleteWhenItsTimeIsOver) {
  check(kExpected, [] {
    const Library runtime("libcudart.so.13");
    void *const busy = make_stream(runtime), *const other = make_stream(runtime), *device = nullptr;
    EXPECT_EQ(runtime("cudaMalloc", &device, 256 * kMiB), 0);
    EXPECT_EQ(runtime("cudaMemsetAsync", device, 0, 256 * kMiB, busy), 0);  // 61 microseconds
    EXPECT_EQ(runtime("cudaStreamQuery", busy), kNotReady);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(launch(runtime, other), 0);  // 10 microseconds of the host each
    EXPECT_EQ(runtime("cudaStreamQuery", busy), 0);
    EXPECT_EQ(runtime("cudaStreamSynchronize", other), 0);
  });
}

// Of an H200: 4 GiB of device memory take 0.16 to 0.39 ms, 256 MiB of pinned memory 90 (tests/measured/h200/driver_times.json).
TEST(ExpectedClock, MemoryTakesTimeOfTheHost) {
  check(kExpected, [] {
    const Library runtime("libcudart.so.13");
    void *const busy = make_stream(runtime), *device = nullptr, *more = nullptr, *pinned = nullptr;
    const size_t bytes = 16384 * kMiB;
    EXPECT_EQ(runtime("cudaMalloc", &device, bytes), 0);
    EXPECT_EQ(runtime("cudaMemsetAsync", device, 0, bytes, busy), 0);  // 3.9 milliseconds
    EXPECT_EQ(runtime("cudaMalloc", &more, 4096 * kMiB), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", busy), kNotReady);
    EXPECT_EQ(runtime("cudaMallocHost", &pinned, 256 * kMiB), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", busy), 0);
  });
}

}  // namespace
}  // namespace emulated
