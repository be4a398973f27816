#include <cstring>
#include <vector>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

constexpr int kOutOfMemory = 2, kInvalidValue = 1, kInvalidDirection = 21;

uintptr_t allocate(const Library& runtime, size_t bytes) {
  void* address = nullptr;
  EXPECT_EQ(runtime("cudaMalloc", &address, bytes), 0);
  return uintptr_t(address);
}

TEST(Memory, AddressesGoDownwardsAndSmallOnesUpwardsInBlocksOf32MiB) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    const uintptr_t first = allocate(runtime, 20 * kMiB), second = allocate(runtime, 20 * kMiB);
    EXPECT_EQ(first - second, 20 * kMiB);
    const uintptr_t small = allocate(runtime, 2 * kMiB);
    EXPECT_EQ(small % (32 * kMiB), 0U);
    EXPECT_LT(small, second);
    EXPECT_EQ(allocate(runtime, 2 * kMiB) - small, 2 * kMiB);
    // Below the block of 32 MiB, of which 28 MiB are still free.
    EXPECT_EQ(small - allocate(runtime, 4 * kMiB), 4 * kMiB);
  });
}

TEST(Memory, AFreedAddressIsNotGivenAgain) {
  check({}, [] {
    const Library runtime("libcudart.so.12");
    const uintptr_t first = allocate(runtime, 64 * kMiB);
    EXPECT_EQ(runtime("cudaFree", reinterpret_cast<void*>(first)), 0);
    EXPECT_LT(allocate(runtime, 64 * kMiB), first);
  });
}

TEST(Memory, AddressesComeRoundAgainWhenAllOfTheWindowWereGiven) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    const uintptr_t held = allocate(runtime, 4096 * kMiB);
    // The window has 4 TiB: 1024 times 4 GiB.
    for (int i = 0; i < 3000; ++i) {
      const uintptr_t address = allocate(runtime, 4096 * kMiB);
      ASSERT_NE(address, held);
      ASSERT_EQ(runtime("cudaFree", reinterpret_cast<void*>(address)), 0);
    }
  });
}

uint64_t read_bytes = 0;
const void *read_from = nullptr, *written_to = nullptr;
int written = 0;

TEST(Memory, WhoIsAskedSeesCopiesAndChangesWhatCameToTheHost) {
  check({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    auto* const on_read = reinterpret_cast<void (*)(void (*)(void*, const void*, uint64_t))>(
        driver.find("metaprof_emulator_on_read"));
    void* const device = reinterpret_cast<void*>(allocate(runtime, kMiB));
    auto* const on_write = reinterpret_cast<void (*)(void (*)(const void*, const void*, uint64_t))>(
        driver.find("metaprof_emulator_on_write"));
    on_write([](const void* to, const void* host, uint64_t) {
      written_to = to;
      written = *static_cast<const int*>(host);
    });
    on_read([](void* host, const void* from, uint64_t bytes) {
      read_from = from;
      read_bytes += bytes;
      *static_cast<int*>(host) = 7;
    });
    constexpr int to_device = 1, to_host = 2;
    int value = 5;
    EXPECT_EQ(runtime("cudaMemcpy", device, static_cast<void*>(&value), sizeof value, to_device), 0);
    EXPECT_EQ(runtime("cudaMemcpy", device, static_cast<void*>(&value), sizeof value, 5), kInvalidDirection);
    EXPECT_EQ(runtime("cudaMemcpy", static_cast<void*>(&value), device, sizeof value, to_host), 0);
    EXPECT_EQ(value, 7);
    EXPECT_EQ(read_bytes, sizeof value);
    EXPECT_EQ(read_from, device);
    EXPECT_EQ(written_to, device);
    EXPECT_EQ(written, 5);
    on_read(nullptr);
    on_write(nullptr);
    EXPECT_EQ(runtime("cudaMemcpy", static_cast<void*>(&value), device, sizeof value, to_host), 0);
    EXPECT_EQ(value, 0);
    EXPECT_EQ(read_bytes, sizeof value);
  });
}

TEST(Memory, TheContextIsNobodysElse) {
  check({{"METAPROF_EMULATOR_MEMORY", std::to_string(100 * kMiB)},
         {"METAPROF_EMULATOR_CONTEXT", std::to_string(30 * kMiB)}},
        [] {
          const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
          size_t available = 0, total = 0;
          EXPECT_EQ(runtime("cudaMemGetInfo", &available, &total), 0);
          EXPECT_EQ(total, 100 * kMiB);
          EXPECT_EQ(available, 70 * kMiB);
          void* address = nullptr;
          EXPECT_EQ(runtime("cudaMalloc", &address, 71 * kMiB), kOutOfMemory);
          EXPECT_EQ(runtime("cudaMalloc", &address, 70 * kMiB), 0);
          EXPECT_EQ(driver.count("memory", 0), 70 * kMiB);
        });
}

TEST(Memory, TheDeviceIsFullAtItsLimit) {
  check({{"METAPROF_EMULATOR_MEMORY", std::to_string(100 * kMiB)}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    const uintptr_t held = allocate(runtime, 60 * kMiB);
    void* address = nullptr;
    EXPECT_EQ(runtime("cudaMalloc", &address, 60 * kMiB), kOutOfMemory);
    EXPECT_EQ(address, nullptr);
    EXPECT_EQ(runtime("cudaMalloc", &address, ~size_t(0)), kOutOfMemory);
    EXPECT_EQ(runtime("cudaGetLastError"), kOutOfMemory);
    EXPECT_EQ(runtime("cudaGetLastError"), 0);
    size_t available = 0, total = 0;
    EXPECT_EQ(runtime("cudaMemGetInfo", &available, &total), 0);
    EXPECT_EQ(total, 100 * kMiB);
    EXPECT_EQ(available, 40 * kMiB);
    EXPECT_EQ(runtime("cudaFree", reinterpret_cast<void*>(held)), 0);
    EXPECT_EQ(driver.count("memory", 0), 0U);
    EXPECT_EQ(driver.count("memory_peak", 0), 60 * kMiB);
    EXPECT_EQ(driver.count("no such counter", 0), ~uint64_t(0));
  });
}

TEST(Memory, WhatIsNotHeldCannotBeFreed) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    const uintptr_t address = allocate(runtime, kMiB);
    EXPECT_EQ(runtime("cudaFree", reinterpret_cast<void*>(address + 512)), kInvalidValue);
    EXPECT_EQ(runtime("cudaFree", reinterpret_cast<void*>(address)), 0);
    EXPECT_EQ(runtime("cudaFree", reinterpret_cast<void*>(address)), kInvalidValue);
    EXPECT_EQ(runtime("cudaFree", static_cast<void*>(nullptr)), 0);
    int on_the_stack = 0;
    EXPECT_EQ(runtime("cudaFree", static_cast<void*>(&on_the_stack)), kInvalidValue);
  });
}

TEST(Memory, DeviceMemoryReadsAsZeroAndCopiesAreCounted) {
  check({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    void* const device = reinterpret_cast<void*>(allocate(runtime, 4096));
    std::vector<char> host(100, 'x'), other(100, 'y');
    const auto copy = [&](void* to, const void* from, size_t bytes) {
      return runtime("cudaMemcpy", to, from, bytes, 4);
    };
    EXPECT_EQ(copy(device, host.data(), host.size()), 0);
    EXPECT_EQ(copy(host.data(), device, 60), 0);
    EXPECT_EQ(host[59], 0);
    EXPECT_EQ(host[60], 'x');
    EXPECT_EQ(copy(host.data(), other.data(), 1), 0);
    EXPECT_EQ(host[0], 'y');
    EXPECT_EQ(driver.count("reads"), 1U);
    EXPECT_EQ(driver.count("read_bytes"), 60U);
    EXPECT_EQ(driver.count("writes"), 1U);
    EXPECT_EQ(driver.count("written_bytes"), 100U);
    // More than the block has, and a block that is gone.
    EXPECT_EQ(copy(host.data(), device, 8192), kInvalidValue);
    EXPECT_EQ(runtime("cudaFree", device), 0);
    EXPECT_EQ(copy(host.data(), device, 60), kInvalidValue);
    EXPECT_EQ(runtime("cudaMemset", device, 0, size_t(60)), kInvalidValue);
  });
}

struct Attributes {  // cudaPointerAttributes; CUDA 13 has reserved words behind them
  int type = -1, device = -1;
  void *device_pointer = nullptr, *host_pointer = nullptr;
  long reserved[8] = {};
};

TEST(Memory, HostMemoryIsHostMemory) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    constexpr int unregistered = 0, host = 1, managed = 3;
    Attributes attributes;
    const auto type_of = [&](const void* address) {
      EXPECT_EQ(runtime("cudaPointerGetAttributes", &attributes, address), 0);
      return attributes.type;
    };
    char* pinned = nullptr;
    EXPECT_EQ(runtime("cudaHostAlloc", reinterpret_cast<void**>(&pinned), size_t(10000), 0U), 0);
    std::memset(pinned, 7, 10000);
    EXPECT_EQ(type_of(pinned + 9999), host);
    EXPECT_EQ(attributes.host_pointer, pinned + 9999);
    EXPECT_EQ(runtime("cudaFreeHost", static_cast<void*>(pinned)), 0);

    char* shared = nullptr;
    EXPECT_EQ(runtime("cudaMallocManaged", reinterpret_cast<void**>(&shared), size_t(10000), 1U), 0);
    EXPECT_EQ(shared[9999], 0);
    EXPECT_EQ(type_of(shared), managed);
    EXPECT_EQ(runtime("cudaFree", static_cast<void*>(shared)), 0);

    std::vector<char> mine(5000);
    EXPECT_EQ(type_of(mine.data()), unregistered);
    EXPECT_EQ(attributes.device, -1);
    void* const address = mine.data();
    EXPECT_EQ(runtime("cudaHostRegister", address, mine.size(), 0U), 0);
    EXPECT_EQ(runtime("cudaHostRegister", address, mine.size(), 0U), 712);  // already
    EXPECT_EQ(type_of(mine.data() + 1), host);
    EXPECT_EQ(runtime("cudaHostUnregister", address), 0);
    EXPECT_EQ(runtime("cudaHostUnregister", address), 713);  // not any more
  });
}

TEST(Memory, Cuda12HasShorterPointerAttributes) {
  check({}, [] {
    const Library runtime("libcudart.so.12");
    Attributes attributes;
    attributes.reserved[0] = 77;
    int on_the_stack = 0;
    EXPECT_EQ(runtime("cudaPointerGetAttributes", &attributes, static_cast<const void*>(&on_the_stack)), 0);
    EXPECT_EQ(attributes.reserved[0], 77);
  });
}

TEST(Memory, EachDeviceHasItsOwn) {
  check({{"METAPROF_EMULATOR_GPUS", "8"}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    for (int device = 0; device < 8; ++device) {
      EXPECT_EQ(runtime("cudaSetDevice", device), 0);
      const uintptr_t address = allocate(runtime, size_t(device + 1) * kMiB);
      Attributes attributes;
      EXPECT_EQ(runtime("cudaPointerGetAttributes", &attributes, reinterpret_cast<const void*>(address)), 0);
      EXPECT_EQ(attributes.device, device);
      EXPECT_EQ(driver.count("memory", device), size_t(device + 1) * kMiB);
    }
    EXPECT_EQ(driver.count("memory"), 36 * kMiB);  // 1 + 2 + … + 8
  });
}

struct IpcHandle {
  char bytes[64];
};

TEST(Memory, AnotherProcessGetsAddressesAndTakesNoMemory) {
  check({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    // The other process is one that has not used CUDA before it forks.
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t owner = fork();
    if (owner == 0) {
      IpcHandle handle;
      EXPECT_EQ(runtime("cudaIpcGetMemHandle", &handle, reinterpret_cast<void*>(allocate(runtime, 3 * kMiB))),
                0);
      _exit(write(ends[1], &handle, sizeof handle) == sizeof handle ? 0 : 1);
    }
    IpcHandle handle;
    ASSERT_EQ(read(ends[0], &handle, sizeof handle), ssize_t(sizeof handle));
    waitpid(owner, nullptr, 0);
    void* address = nullptr;
    EXPECT_EQ(runtime("cudaIpcOpenMemHandle", &address, handle, 1U), 0);
    int first = 1;
    EXPECT_EQ(
        runtime("cudaMemcpy", static_cast<void*>(&first), static_cast<const void*>(address), sizeof first, 4),
        0);
    EXPECT_EQ(first, 0);
    EXPECT_EQ(driver.count("memory"), 0U);
    EXPECT_EQ(runtime("cudaIpcCloseMemHandle", address), 0);
  });
}

TEST(VirtualMemory, MemoryIsTakenWhenItIsMade) {
  check({{"METAPROF_EMULATOR_DEVICE", h200_with(100 * kMiB)}}, [] {
    const Library driver("libcuda.so.1"), runtime("libcudart.so.13");
    struct {
      int type = 1, handles = 0, location = 1, device = 0;
      void* security = nullptr;
      char flags[8] = {};
    } properties;
    const void* const on_device = &properties;
    uintptr_t base = 0;
    EXPECT_EQ(driver("cuInit", 0U), 0);
    EXPECT_EQ(driver("cuMemAddressReserve", &base, 200 * kMiB, size_t(0), uintptr_t(0), uint64_t(0)), 0);
    EXPECT_EQ(driver.count("memory"), 0U);
    uint64_t first = 0, second = 0, third = 0;
    EXPECT_EQ(driver("cuMemCreate", &first, 20 * kMiB, on_device, uint64_t(0)), 0);
    EXPECT_EQ(driver("cuMemCreate", &second, 60 * kMiB, on_device, uint64_t(0)), 0);
    EXPECT_EQ(driver("cuMemCreate", &third, 60 * kMiB, on_device, uint64_t(0)), kOutOfMemory);
    EXPECT_EQ(driver("cuMemCreate", &third, kMiB, on_device, uint64_t(0)),
              kInvalidValue);  // not pieces of 2 MiB
    EXPECT_EQ(driver.count("memory"), 80 * kMiB);

    EXPECT_EQ(driver("cuMemMap", base, 20 * kMiB, size_t(0), first, uint64_t(0)), 0);
    EXPECT_EQ(driver("cuMemMap", base + 20 * kMiB, 60 * kMiB, size_t(0), second, uint64_t(0)), 0);
    Attributes attributes;
    const void* const inside = reinterpret_cast<const void*>(base + 79 * kMiB);
    EXPECT_EQ(runtime("cudaPointerGetAttributes", &attributes, inside), 0);
    EXPECT_EQ(attributes.type, 2);
    // A copy over the seam of two mappings, and one out of them.
    std::vector<char> host(40 * kMiB);
    EXPECT_EQ(runtime("cudaMemcpy", reinterpret_cast<void*>(base), static_cast<const void*>(host.data()),
                      host.size(), 4),
              0);
    void* const late = reinterpret_cast<void*>(base + 60 * kMiB);
    EXPECT_EQ(runtime("cudaMemcpy", late, static_cast<const void*>(host.data()), host.size(), 4),
              kInvalidValue);

    // It is given back when nobody holds it and nothing maps it.
    EXPECT_EQ(driver("cuMemRelease", second), 0);
    EXPECT_EQ(driver.count("memory"), 80 * kMiB);
    EXPECT_EQ(driver("cuMemUnmap", base + 20 * kMiB, 60 * kMiB), 0);
    EXPECT_EQ(driver.count("memory"), 20 * kMiB);
    EXPECT_EQ(driver("cuMemUnmap", base, 20 * kMiB), 0);
    EXPECT_EQ(driver("cuMemRelease", first), 0);
    EXPECT_EQ(driver("cuMemRelease", first), kInvalidValue);
    EXPECT_EQ(driver.count("memory"), 0U);
  });
}

uint64_t attribute(const Library& runtime, void* pool, int which) {
  uint64_t value = 0;
  EXPECT_EQ(runtime("cudaMemPoolGetAttribute", pool, which, static_cast<void*>(&value)), 0);
  return value;
}

TEST(Pools, ReservedGrowsInStepsOf32MiBAndUsedToTheByte) {
  check({{"METAPROF_EMULATOR_MEMORY", std::to_string(100 * kMiB)}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    constexpr int threshold = 4, reserved = 5, used = 7;
    void *pool = nullptr, *first = nullptr, *second = nullptr, *third = nullptr, *const stream = nullptr;
    EXPECT_EQ(runtime("cudaDeviceGetDefaultMemPool", &pool, 0), 0);
    EXPECT_EQ(runtime("cudaMallocAsync", &first, size_t(1000), stream), 0);
    EXPECT_EQ(attribute(runtime, pool, used), 1024U);
    EXPECT_EQ(attribute(runtime, pool, reserved), 32 * kMiB);
    EXPECT_EQ(runtime("cudaMallocAsync", &second, 40 * kMiB, stream), 0);
    EXPECT_EQ(attribute(runtime, pool, reserved), 64 * kMiB);
    EXPECT_EQ(runtime("cudaMallocAsync", &third, 60 * kMiB, stream), kOutOfMemory);  // 128 MiB reserved
    EXPECT_EQ(runtime("cudaFreeAsync", second, stream), 0);
    EXPECT_EQ(driver.count("memory"), 64 * kMiB);
    // A wait gives back what is free, down to the threshold: 0 if nobody set it.
    EXPECT_EQ(runtime("cudaDeviceSynchronize"), 0);
    EXPECT_EQ(driver.count("memory"), 32 * kMiB);
    uint64_t everything = ~uint64_t(0);
    EXPECT_EQ(runtime("cudaMemPoolSetAttribute", pool, threshold, static_cast<void*>(&everything)), 0);
    EXPECT_EQ(runtime("cudaFreeAsync", first, stream), 0);
    EXPECT_EQ(runtime("cudaDeviceSynchronize"), 0);
    EXPECT_EQ(driver.count("memory"), 32 * kMiB);
    EXPECT_EQ(runtime("cudaMemPoolTrimTo", pool, size_t(0)), 0);
    EXPECT_EQ(driver.count("memory"), 0U);
    EXPECT_EQ(runtime("cudaFreeAsync", first, stream), kInvalidValue);
  });
}

}  // namespace
}  // namespace emulated
