#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/emulator/emulated.h"

namespace emulated {
namespace {

constexpr int kInvalidDevice = 101, kNoDevice = 100, kInvalidHandle = 400;

int attribute(const Library& runtime, int which) {
  int value = -1;
  EXPECT_EQ(runtime("cudaDeviceGetAttribute", &value, which, 0), 0);
  return value;
}

TEST(Devices, AreWhatTheDescriptionSays) {
  const std::string t4 =
      "name=t4;title=Tesla T4;sm=75;multiprocessors=40;threads_per_multiprocessor=1024;"
      "shared_memory_per_block=65536;memory=15638462464";
  check({{"METAPROF_EMULATOR_DEVICE", t4}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    EXPECT_EQ(attribute(runtime, 16), 40);    // multiprocessors
    EXPECT_EQ(attribute(runtime, 39), 1024);  // threads of one
    EXPECT_EQ(attribute(runtime, 75), 7);     // compute capability
    EXPECT_EQ(attribute(runtime, 76), 5);
    EXPECT_EQ(attribute(runtime, 97), 65536);  // shared memory of a block
    EXPECT_EQ(attribute(runtime, 106), 16);    // blocks of a multiprocessor: of 7.5
    EXPECT_EQ(attribute(runtime, 81), 65536);  // before 8.0 no block's shared memory is the system's
    EXPECT_EQ(attribute(runtime, 111), 0);
    char name[64] = {};
    EXPECT_EQ(driver("cuDeviceGetName", name, 64, 0), 0);
    EXPECT_STREQ(name, "Tesla T4");
    size_t bytes = 0;
    EXPECT_EQ(driver("cuDeviceTotalMem_v2", &bytes, 0), 0);
    EXPECT_EQ(bytes, 15638462464U);
  });
}

// Where the name, the total memory and the multiprocessors stand, by NVIDIA's declarations of cudaDeviceProp.
void check_properties(const char* soname, const char* function, size_t size, size_t multiprocessors) {
  check({}, [&] {
    const Library runtime(soname);
    std::vector<char> properties(size + 16, '!');
    EXPECT_EQ(runtime(function, properties.data(), 0), 0);
    EXPECT_STREQ(properties.data(), "NVIDIA H200");
    size_t memory = 0;
    std::memcpy(&memory, properties.data() + 288, sizeof memory);
    EXPECT_EQ(memory, 150121480192U);
    int count = 0;
    std::memcpy(&count, properties.data() + multiprocessors, sizeof count);
    EXPECT_EQ(count, 132);
    EXPECT_EQ(std::count(properties.begin() + long(size), properties.end(), '!'), 16);
    EXPECT_EQ(runtime(function, properties.data(), 1), kInvalidDevice);
  });
}

TEST(Devices, PropertiesAreLaidOutAsInCuda12) {
  check_properties("libcudart.so.12", "cudaGetDeviceProperties_v2", 1032, 388);
}
TEST(Devices, PropertiesAreLaidOutAsInCuda13) {
  check_properties("libcudart.so.13", "cudaGetDeviceProperties", 1008, 384);
}

TEST(Devices, OnlyThoseThatAreVisible) {
  check({{"METAPROF_EMULATOR_GPUS", "8"}, {"CUDA_VISIBLE_DEVICES", "6,2"}}, [] {
    const Library runtime("libcudart.so.13"), nvml("libnvidia-ml.so.1");
    int count = 0;
    EXPECT_EQ(runtime("cudaGetDeviceCount", &count), 0);
    EXPECT_EQ(count, 2);
    char bus[32] = {};
    EXPECT_EQ(runtime("cudaDeviceGetPCIBusId", bus, 32, 0), 0);
    EXPECT_STREQ(bus, "0000:07:00.0");
    EXPECT_EQ(runtime("cudaSetDevice", 2), kInvalidDevice);
    EXPECT_EQ(runtime("cudaSetDevice", -1), kInvalidDevice);
    unsigned all = 0;  // NVML does not look at the variable
    EXPECT_EQ(nvml("nvmlDeviceGetCount_v2", &all), 0);
    EXPECT_EQ(all, 8U);
  });
  // By name: up to the first that is none, or that could be several.
  constexpr const char* six = "GPU-6d657461-7072-6f66-2d64-657669636506";
  const std::string then = std::string(six) + ",";
  for (const auto& [names, visible] :
       {std::pair(then + "GPU-6d657461-7072-6f66-2d64-657669636502", 2), std::pair(then + "GPU-6d", 1),
        std::pair(then + "GPU-6d657461-7072-6f66-2d64-657669636509,0", 1)})
    check({{"METAPROF_EMULATOR_GPUS", "8"}, {"CUDA_VISIBLE_DEVICES", names}}, [visible = visible] {
      const Library runtime("libcudart.so.13");
      int count = 0;
      EXPECT_EQ(runtime("cudaGetDeviceCount", &count), 0);
      EXPECT_EQ(count, visible);
      char bus[32] = {};
      EXPECT_EQ(runtime("cudaDeviceGetPCIBusId", bus, 32, 0), 0);
      EXPECT_STREQ(bus, "0000:07:00.0");
    });
  for (const char* nothing : {"", "-1", "9,0", "what", "GPU-7"})
    check({{"CUDA_VISIBLE_DEVICES", nothing}}, [] {
      const Library runtime("libcudart.so.13");
      int count = -1;
      EXPECT_EQ(runtime("cudaGetDeviceCount", &count), kNoDevice);
      EXPECT_EQ(count, 0);
      void* address = nullptr;
      EXPECT_EQ(runtime("cudaMalloc", &address, size_t(1)), kNoDevice);
    });
}

TEST(Devices, PeerAccessIsTurnedOnOnce) {
  check({{"METAPROF_EMULATOR_GPUS", "2"}}, [] {
    const Library runtime("libcudart.so.13");
    int can = -1;
    EXPECT_EQ(runtime("cudaDeviceCanAccessPeer", &can, 0, 1), 0);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(runtime("cudaDeviceCanAccessPeer", &can, 1, 1), 0);
    EXPECT_EQ(can, 0);
    EXPECT_EQ(runtime("cudaDeviceEnablePeerAccess", 1, 0U), 0);
    EXPECT_EQ(runtime("cudaDeviceEnablePeerAccess", 1, 0U), 704);
    EXPECT_EQ(runtime("cudaDeviceDisablePeerAccess", 1), 0);
    EXPECT_EQ(runtime("cudaDeviceDisablePeerAccess", 1), 705);
  });
}

TEST(Devices, AContextIsMadeByTheFirstUse) {
  check({{"METAPROF_EMULATOR_GPUS", "2"}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    unsigned flags = 0;
    int active = -1, count = 0;
    EXPECT_EQ(runtime("cudaGetDeviceCount", &count), 0);
    EXPECT_EQ(driver("cuDevicePrimaryCtxGetState", 1, &flags, &active), 0);
    EXPECT_EQ(active, 0);
    EXPECT_EQ(runtime("cudaSetDevice", 1), 0);
    EXPECT_EQ(driver("cuDevicePrimaryCtxGetState", 1, &flags, &active), 0);
    EXPECT_EQ(active, 1);
    EXPECT_EQ(driver("cuDevicePrimaryCtxGetState", 0, &flags, &active), 0);
    EXPECT_EQ(active, 0);
  });
}

TEST(Devices, EachThreadHasItsCurrentOne) {
  check({{"METAPROF_EMULATOR_GPUS", "4"}}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&runtime, t] {
        EXPECT_EQ(runtime("cudaSetDevice", t), 0);
        for (int i = 0; i < 1000; ++i) {
          void* address = nullptr;
          EXPECT_EQ(runtime("cudaMalloc", &address, size_t(4096)), 0);
          EXPECT_EQ(runtime("cudaFree", address), 0);
        }
        int device = -1;
        EXPECT_EQ(runtime("cudaGetDevice", &device), 0);
        EXPECT_EQ(device, t);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver.count("memory"), 0U);
  });
}

TEST(Streams, AHandleThatIsNoneIsRefused) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void *stream = nullptr, *event = nullptr;
    EXPECT_EQ(runtime("cudaStreamCreate", &stream), 0);
    EXPECT_EQ(runtime("cudaStreamQuery", stream), 0);
    EXPECT_EQ(runtime("cudaStreamDestroy", stream), 0);
    EXPECT_EQ(runtime("cudaStreamDestroy", stream), kInvalidHandle);
    EXPECT_EQ(runtime("cudaStreamSynchronize", stream), kInvalidHandle);
    EXPECT_EQ(runtime("cudaEventRecord", event, stream), kInvalidHandle);
    EXPECT_EQ(runtime("cudaStreamSynchronize", static_cast<void*>(nullptr)), 0);
  });
}

TEST(Streams, TimeBetweenEventsIsConstant) {
  check({}, [] {
    const Library runtime("libcudart.so.12");
    void *from = nullptr, *to = nullptr, *const stream = nullptr;
    float milliseconds = 0;
    EXPECT_EQ(runtime("cudaEventCreate", &from), 0);
    EXPECT_EQ(runtime("cudaEventCreateWithFlags", &to, 2U), 0);  // without timing
    EXPECT_EQ(runtime("cudaEventElapsedTime", &milliseconds, from, to), kInvalidHandle);
    EXPECT_EQ(runtime("cudaEventRecord", from, stream), 0);
    EXPECT_EQ(runtime("cudaEventRecord", to, stream), 0);
    EXPECT_EQ(runtime("cudaEventElapsedTime", &milliseconds, from, to), kInvalidHandle);
    EXPECT_EQ(runtime("cudaEventElapsedTime", &milliseconds, from, from), 0);
    EXPECT_FLOAT_EQ(milliseconds, 0.01F);
  });
}

TEST(Kernels, AreCountedAndTheirShapeIsChecked) {
  check({}, [] {
    const Library runtime("libcudart.so.13"), driver("libcuda.so.1");
    const auto launch = [&](Dim3 grid, Dim3 block) {
      return runtime("cudaLaunchKernel", static_cast<const void*>("kernel"), grid, block,
                     static_cast<void**>(nullptr), size_t(0), static_cast<void*>(nullptr));
    };
    EXPECT_EQ(launch({1, 1, 1}, {1024, 1, 1}), 0);
    EXPECT_EQ(launch({1, 1, 1}, {1025, 1, 1}), 9);
    EXPECT_EQ(launch({0, 1, 1}, {1, 1, 1}), 9);
    EXPECT_EQ(launch({1, 70000, 1}, {1, 1, 1}), 9);
    EXPECT_EQ(driver.count("kernels"), 1U);
    int blocks = 0;
    const void* const kernel = nullptr;
    // 2048 threads of a multiprocessor; 227 KiB of its 228 taken by one block; 32 blocks at most.
    const char* const ask = "cudaOccupancyMaxActiveBlocksPerMultiprocessor";
    EXPECT_EQ(runtime(ask, &blocks, kernel, 512, size_t(0)), 0);
    EXPECT_EQ(blocks, 4);
    EXPECT_EQ(runtime(ask, &blocks, kernel, 64, size_t(232448)), 0);
    EXPECT_EQ(blocks, 1);
    EXPECT_EQ(runtime(ask, &blocks, kernel, 32, size_t(0)), 0);
    EXPECT_EQ(blocks, 32);
  });
}

TEST(Driver, FunctionsAreFoundByName) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    void* function = nullptr;
    int status = -1;
    EXPECT_EQ(runtime("cudaGetDriverEntryPointByVersion", "cuMemGetAddressRange", &function, 12000U,
                      uint64_t(0), &status),
              0);
    EXPECT_EQ(status, 0);
    EXPECT_NE(function, nullptr);
    EXPECT_EQ(
        runtime("cudaGetDriverEntryPointByVersion", "cuNoSuchThing", &function, 12000U, uint64_t(0), &status),
        0);
    EXPECT_EQ(status, 1);  // the status says it, not an error
    EXPECT_EQ(function, nullptr);
  });
}

TEST(Processes, AForkAfterTheFirstUseMayNotUseCuda) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    const auto in_child = [&runtime] {
      const pid_t child = fork();
      if (child == 0) {
        void* address = nullptr;
        _exit(runtime("cudaMalloc", &address, size_t(1)));
      }
      int status = 0;
      waitpid(child, &status, 0);
      return WEXITSTATUS(status);
    };
    EXPECT_EQ(in_child(), 0);
    int count = 0;
    EXPECT_EQ(runtime("cudaGetDeviceCount", &count), 0);
    EXPECT_EQ(in_child(), 3);  // "initialization error"
  });
}

TEST(Processes, AForkWhileOthersAllocateDoesNotHang) {
  check({}, [] {
    const Library runtime("libcudart.so.13");
    std::atomic<bool> stop = false;
    std::thread busy([&] {
      while (!stop) {
        void* address = nullptr;
        runtime("cudaMalloc", &address, size_t(4096));
        runtime("cudaFree", address);
      }
    });
    for (int i = 0; i < 50; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        size_t available = 0, total = 0;
        _exit(runtime("cudaMemGetInfo", &available, &total));
      }
      waitpid(child, nullptr, 0);
    }
    stop = true;
    busy.join();
  });
}

// What the first call of CUDA says when the environment makes no sense, after "metaprof emulator: ".
void refused(const std::string& variable, const std::string& value, const std::string& message) {
  const Outcome outcome = run({{variable, value}}, [] {
    const Library runtime("libcudart.so.13");
    int count = 0;
    runtime("cudaGetDeviceCount", &count);
  });
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.errors, "metaprof emulator: " + message + "\n");
}

TEST(Environment, WhatMakesNoSenseIsRefused) {
  refused("METAPROF_EMULATOR_GPUS", "17", "METAPROF_EMULATOR_GPUS is 17, but must be a number from 1 to 16");
  refused("METAPROF_EMULATOR_GPUS", "two",
          "METAPROF_EMULATOR_GPUS is two, but must be a number from 1 to 16");
  refused("METAPROF_EMULATOR_MEMORY", "0",
          "METAPROF_EMULATOR_MEMORY is 0, but must be a number from 1 to 4398046511104");
  refused("METAPROF_EMULATOR_LOG", "/no/such/folder",
          "METAPROF_EMULATOR_LOG: /no/such/folder is not a folder");
  refused("METAPROF_EMULATOR_CONTEXT", "150121480193",
          "METAPROF_EMULATOR_CONTEXT is 150121480193, but must be a number from 0 to 150121480192");
  refused("METAPROF_EMULATOR_CLOCK", "soon",
          "METAPROF_EMULATOR_CLOCK is soon, but must be at-once, expected or late");
  refused("METAPROF_EMULATOR_DEVICE", "h200", "METAPROF_EMULATOR_DEVICE: 'h200' is not key=value");
  refused("METAPROF_EMULATOR_DEVICE", "name=h200", "METAPROF_EMULATOR_DEVICE: title is missing");
  refused("METAPROF_EMULATOR_DEVICE", h200_with(1) + ";color=green",
          "METAPROF_EMULATOR_DEVICE: unknown key color");
  refused("METAPROF_EMULATOR_DEVICE", h200_with(0),
          "METAPROF_EMULATOR_DEVICE: memory is 0, but must be a number from 1 to 4398046511104");
}

// A daemon closes all files that it does not know; its next one gets the number of the log.
TEST(Log, IsNotWrittenIntoAFileOfTheProgram) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("emulator-own-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const std::string own = folder / "own";
  check({{"METAPROF_EMULATOR_LOG", folder.string()}}, [&] {
    const Library runtime("libcudart.so.13");
    void *address = nullptr, *more = nullptr;
    runtime("cudaMalloc", &address, kMiB);
    for (int file = 3; file < 100; ++file) close(file);
    for (int i = 0; i < 20; ++i)
      EXPECT_GE(open((own + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0644), 0);
    runtime("cudaMalloc", &more, kMiB);
  });
  size_t in_log = 0, in_own = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      ++(entry.path().extension() == ".log" ? in_log : in_own);
  }
  fs::remove_all(folder);
  EXPECT_EQ(in_log, 4U);  // the head, the device, both requests
  EXPECT_EQ(in_own, 0U);
}

TEST(Log, HasALineForEachEvent) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("emulator-log-" + std::to_string(getpid()));
  fs::create_directory(folder);
  check(
      {{"METAPROF_EMULATOR_LOG", folder.string()}, {"METAPROF_EMULATOR_MEMORY", std::to_string(100 * kMiB)}},
      [] {
        const Library runtime("libcudart.so.13");
        void *address = nullptr, *more = nullptr;
        runtime("cudaMalloc", &address, 60 * kMiB);
        runtime("cudaMalloc", &more, 60 * kMiB);
        runtime("cudaFree", address);
      });
  std::vector<std::string> lines;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  fs::remove_all(folder);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines[0].starts_with("emulator 1 "));
  const auto event = [&lines](size_t i) { return lines[i].substr(lines[i].find(' ') + 1); };  // less the time
  EXPECT_EQ(event(1), "device 0 104857600");
  EXPECT_EQ(event(2), "+ 0 0x13fffc400000 62914560 cudaMalloc");  // 20 TiB less 60 MiB
  EXPECT_EQ(event(3), "oom 0 62914560 cudaMalloc");
  EXPECT_EQ(event(4), "- 0 0x13fffc400000 62914560 cudaFree");
}

}  // namespace
}  // namespace emulated
