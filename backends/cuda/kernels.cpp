#include "backends/cuda/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cuda/kernel_parameters.h"
#include "core/rounding.h"

namespace metaprof::cuda {

extern const char* const kKernelsPtx;  // made of kernels.cu by the build

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kWordsOfThread = 4;  // at once, where a region is large enough

}  // namespace

Kernels::Kernels(const CudaDevice& device)
    : most_blocks_(int64_t{device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)} *
                   device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / kThreads) {
  driver().cuModuleLoadData(&module_, kKernelsPtx);
  driver().cuModuleGetFunction(&spend_, module_, "metaprof_spend");
  for (size_t i = 0; i < add_.size(); ++i)
    driver().cuModuleGetFunction(&add_[i], module_, fmt::format("metaprof_add_{}", 2 << i).c_str());
}

Kernels::~Kernels() { driver().cuModuleUnload.try_to(module_); }

int Kernels::spend(std::span<const Region> reads, std::span<const Region> writes, double flops,
                   CUstream stream) const {
  constexpr size_t kMost = kMostRegions;
  const auto launches = static_cast<int>(std::max<size_t>(divide_up(reads.size() + writes.size(), kMost), 1));
  for (int i = 0; i < launches; ++i) {
    const auto read = reads.first(std::min(reads.size(), kMost));
    const auto written = writes.first(std::min(writes.size(), kMost - read.size()));
    launch(read, written, flops / launches, stream);
    reads = reads.subspan(read.size());
    writes = writes.subspan(written.size());
  }
  return launches;
}

void Kernels::add(int bytes_per_load, CUdeviceptr left, CUdeviceptr right, CUdeviceptr result, uint64_t bytes,
                  CUstream stream) const {
  const auto width = static_cast<unsigned>(bytes_per_load);
  unsigned long long count = bytes / width;
  const int64_t blocks = divide_up(static_cast<int64_t>(count), kThreads * kWordsOfThread);
  void* parameters[] = {&left, &right, &result, &count};
  driver().cuLaunchKernel(add_.at(static_cast<size_t>(std::countr_zero(width)) - 1),
                          static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, stream, parameters,
                          nullptr);
}

void Kernels::launch(std::span<const Region> reads, std::span<const Region> writes, double flops,
                     CUstream stream) const {
  Regions regions = {};
  uint64_t words = 0;
  const auto add = [&](const Region& region) {
    const uint64_t amount = divide_up(region.amount, uint64_t{sizeof(Word)});
    regions.address[regions.count] = region.address;
    regions.words[regions.count] = std::max<uint64_t>(region.bytes / sizeof(Word), 1);
    regions.amount[regions.count++] = amount;
    words += amount;
  };
  for (const Region& region : reads) add(region);
  regions.reads = regions.count;
  for (const Region& region : writes) add(region);
  const int blocks = deal_blocks(regions, words);
  const double of_thread = flops / 2 / static_cast<double>(int64_t{blocks} * kThreads);
  int multiply_adds = static_cast<int>(std::min(std::ceil(of_thread), 1e9));
  CUdeviceptr never = 0;  // is never written
  void* parameters[] = {&regions, &multiply_adds, &never};
  driver().cuLaunchKernel(spend_, static_cast<unsigned>(blocks), 1, 1, kThreads, 1, 1, 0, stream, parameters,
                          nullptr);
}

// By what each region moves, so that all end together: a list of tensors has regions of very different sizes. No more blocks
// than the device holds at once, but one for each region.
int Kernels::deal_blocks(Regions& regions, uint64_t words) const {
  const double wanted =
      std::ceil(static_cast<double>(words) / static_cast<double>(kThreads * kWordsOfThread));
  const double all = std::clamp(wanted, 1.0, static_cast<double>(most_blocks_));
  for (int i = 0; i < regions.count; ++i) {
    const double share =
        words == 0 ? 0 : all * static_cast<double>(regions.amount[i]) / static_cast<double>(words);
    regions.first_block[i + 1] = regions.first_block[i] + std::max(static_cast<int>(share), 1);
  }
  return std::max(regions.first_block[regions.count], 1);
}

}  // namespace metaprof::cuda
