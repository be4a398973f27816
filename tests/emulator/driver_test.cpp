#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

TEST(Driver, NothingGoesBeforeItIsInitialised) {
  check({}, [] {
    const Library driver("libcuda.so.1");
    int count = -1;
    EXPECT_EQ(driver("cuDeviceGetCount", &count), 3);
    EXPECT_EQ(driver("cuInit", 0U), 0);
    EXPECT_EQ(driver("cuDeviceGetCount", &count), 0);
    EXPECT_EQ(count, 1);
  });
}

TEST(Driver, ARuntimeThatIsLinkedStaticallyIsToldWhyItFails) {
  const Outcome outcome = run({}, [] {
    const Library driver("libcuda.so.1");
    constexpr unsigned char cuda_13[] = {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e,
                                         0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9};
    const void* table = "something";
    for (int i = 0; i < 2; ++i) EXPECT_EQ(driver("cuGetExportTable", &table, &cuda_13[0]), 500);
    EXPECT_EQ(table, nullptr);
  });
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.errors,
            "metaprof emulator: a CUDA runtime that is linked statically into this program or one of its "
            "libraries takes "
            "only NVIDIA's driver; its calls fail. Link it dynamically (nvcc -cudart shared)\n");
}

struct Resource {
  int type;
  unsigned char padding[92];
  unsigned multiprocessors, least, together, flags;
  unsigned char rest[32];
};

TEST(PinnedMemory, IsTheHostsAndCanBeCopiedFrom) {
  check({}, [] {
    const Library driver("libcuda.so.1");
    EXPECT_EQ(driver("cuInit", 0U), 0);
    void* context = nullptr;
    EXPECT_EQ(driver("cuDevicePrimaryCtxRetain", &context, 0), 0);
    EXPECT_EQ(driver("cuCtxSetCurrent", context), 0);
    char* pinned = nullptr;
    EXPECT_EQ(driver("cuMemAllocHost_v2", reinterpret_cast<void**>(&pinned), size_t(0)), 1);
    EXPECT_EQ(driver("cuMemAllocHost_v2", reinterpret_cast<void**>(&pinned), size_t(10000)), 0);
    pinned[9999] = 1;
    uintptr_t device = 0;
    EXPECT_EQ(driver("cuMemAlloc_v2", &device, size_t(10000)), 0);
    EXPECT_EQ(driver("cuMemcpyHtoD_v2", device, static_cast<const void*>(pinned), size_t(10000)), 0);
    EXPECT_EQ(driver("cuMemFreeHost", static_cast<void*>(pinned + 1)), 1);
    EXPECT_EQ(driver("cuMemFreeHost", static_cast<void*>(pinned)), 0);
    EXPECT_EQ(driver("cuMemFreeHost", static_cast<void*>(pinned)), 1);
  });
}

TEST(GreenContexts, HaveAPartOfTheMultiprocessors) {
  check({}, [] {
    const Library driver("libcuda.so.1");
    EXPECT_EQ(driver("cuInit", 0U), 0);
    Resource all = {}, remaining = {}, groups[20] = {};
    EXPECT_EQ(driver("cuDeviceGetDevResource", 0, &all, 1), 0);
    EXPECT_EQ(all.multiprocessors, 132U);
    unsigned count = 20;
    EXPECT_EQ(driver("cuDevSmResourceSplitByCount", &groups[0], &count, &all, &remaining, 0U, 9U), 0);
    EXPECT_EQ(count, 8U);  // of 16: eights belong together
    EXPECT_EQ(groups[7].multiprocessors, 16U);
    EXPECT_EQ(remaining.multiprocessors, 4U);
    uintptr_t descriptor = 0;
    EXPECT_EQ(driver("cuDevResourceGenerateDesc", &descriptor, &groups[0], 1U), 0);
    void *green = nullptr, *context = nullptr, *current = nullptr, *stream = nullptr, *before = nullptr;
    EXPECT_EQ(driver("cuGreenCtxCreate", &green, descriptor, 0, 1U), 0);
    EXPECT_EQ(driver("cuCtxFromGreenCtx", &context, green), 0);
    EXPECT_EQ(driver("cuCtxGetCurrent", &before), 0);
    EXPECT_EQ(driver("cuCtxPushCurrent_v2", context), 0);
    EXPECT_EQ(driver("cuCtxGetCurrent", &current), 0);
    EXPECT_EQ(current, context);
    EXPECT_EQ(driver("cuCtxGetDevResource", current, &all, 1), 0);
    EXPECT_EQ(all.multiprocessors, 16U);
    EXPECT_EQ(driver("cuCtxPopCurrent_v2", &current), 0);
    EXPECT_EQ(driver("cuCtxGetCurrent", &current), 0);
    EXPECT_EQ(current, before);
    EXPECT_EQ(driver("cuGreenCtxStreamCreate", &stream, green, 1U, 0), 0);
    EXPECT_EQ(driver("cuStreamDestroy_v2", stream), 0);
    EXPECT_EQ(driver("cuGreenCtxDestroy", green), 0);
    EXPECT_EQ(driver("cuGreenCtxDestroy", green), 201);
  });
}

}  // namespace
}  // namespace emulated
