#include "meta/platform/hardware.h"

#include <cstdlib>
#include <iterator>

namespace metaprof {

namespace {

// Memory: cudaDeviceProp::totalGlobalMem of the cards; h200 and those below as the recordings report it.
// Rates: the vendor's data sheets, dense, without sparsity. Clocks: boost. PyTorch leaves TF32 off for matrix
// products unless asked.
const Hardware kKnown[] = {
    {.name = "h200",
     .title = "NVIDIA H200",
     .sm = 90,
     .multiprocessors = 132,
     .blocks_per_multiprocessor = 32,
     .shared_memory_per_block = 232448,
     .memory = {150121480192},
     .l2_cache = {62914560},
     .clock_khz = 1980000,
     .memory_clock_khz = 3201000,
     .bandwidth = 4.8e12,
     .flops_f32 = 67e12,
     .flops_tf32 = 494e12,
     .flops_f16 = 989e12,
     .flops_f64 = 34e12},
    {.name = "h100",
     .title = "NVIDIA H100 80GB HBM3",
     .sm = 90,
     .multiprocessors = 132,
     .blocks_per_multiprocessor = 32,
     .shared_memory_per_block = 232448,
     .memory = {85017493504},
     .l2_cache = {52428800},
     .clock_khz = 1980000,
     .memory_clock_khz = 2619000,
     .bandwidth = 3.35e12,
     .flops_f32 = 67e12,
     .flops_tf32 = 494e12,
     .flops_f16 = 989e12,
     .flops_f64 = 34e12},
    {.name = "a100",
     .title = "NVIDIA A100-SXM4-80GB",
     .sm = 80,
     .multiprocessors = 108,
     .blocks_per_multiprocessor = 32,
     .shared_memory_per_block = 166912,
     .memory = {84987084800},
     .l2_cache = {41943040},
     .clock_khz = 1410000,
     .memory_clock_khz = 1593000,
     .bandwidth = 2.039e12,
     .flops_f32 = 19.5e12,
     .flops_tf32 = 156e12,
     .flops_f16 = 312e12,
     .flops_f64 = 9.7e12},
    {.name = "l40s",
     .title = "NVIDIA L40S",
     .sm = 89,
     .multiprocessors = 142,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 24,
     .shared_memory_per_block = 101376,
     .memory = {47698673664},
     .l2_cache = {100663296},
     .clock_khz = 2520000,
     .memory_clock_khz = 9001000,
     .bandwidth = 0.864e12,
     .flops_f32 = 91.6e12,
     .flops_tf32 = 183e12,
     .flops_f16 = 362e12,
     .flops_f64 = 1.4e12},
    {.name = "rtx4090",
     .title = "NVIDIA GeForce RTX 4090",
     .sm = 89,
     .multiprocessors = 128,
     .threads_per_multiprocessor = 1536,
     .blocks_per_multiprocessor = 24,
     .shared_memory_per_block = 101376,
     .memory = {25251807232},
     .l2_cache = {75497472},
     .clock_khz = 2520000,
     .memory_clock_khz = 10501000,
     .bandwidth = 1.008e12,
     .flops_f32 = 82.6e12,
     .flops_tf32 = 82.6e12,
     .flops_f16 = 165e12,
     .flops_f64 = 1.3e12},
    {.name = "t4",
     .title = "Tesla T4",
     .sm = 75,
     .multiprocessors = 40,
     .threads_per_multiprocessor = 1024,
     .blocks_per_multiprocessor = 16,
     .shared_memory_per_block = 65536,
     .memory = {15638462464},
     .l2_cache = {4194304},
     .clock_khz = 1590000,
     .memory_clock_khz = 5001000,
     .bandwidth = 0.32e12,
     .flops_f32 = 8.1e12,
     .flops_tf32 = 8.1e12,
     .flops_f16 = 65e12,
     .flops_f64 = 0.25e12},
    {.name = "cpu",
     .title = "CPU",
     .type = DeviceType::cpu,
     .memory = {25769803776},
     .bandwidth = 5e10,
     .flops_f32 = 1e12,
     .flops_tf32 = 1e12,
     .flops_f16 = 1e12,
     .flops_f64 = 5e11},
};

}  // namespace

const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> known(std::begin(kKnown), std::end(kKnown));
  return known;
}

const Hardware* find_hardware(std::string_view name) {
  for (const Hardware& known : known_hardware())
    if (known.name == name) return &known;
  return nullptr;
}

const Hardware& nearest_hardware(const Hardware& hardware) {
  const Hardware* nearest = &known_hardware().front();
  for (const Hardware& known : known_hardware())
    if (!known.is_cpu() && std::abs(known.sm - hardware.sm) < std::abs(nearest->sm - hardware.sm))
      nearest = &known;
  return *nearest;
}

}  // namespace metaprof
