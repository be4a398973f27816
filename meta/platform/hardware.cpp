#include "meta/platform/hardware.h"

#include <cstdlib>
#include <iterator>

namespace metaprof {

namespace {

// What a compute capability decides (CUDA C++ Programming Guide, technical specifications per compute capability).
struct Architecture {
  int sm;
  int threads_per_multiprocessor, blocks_per_multiprocessor;
  int64_t shared_memory_per_block;
};
constexpr Architecture kArchitectures[] = {
    {70, 2048, 32, 98304},  {75, 1024, 16, 65536},   {80, 2048, 32, 166912},
    {86, 1536, 16, 101376}, {87, 1536, 16, 166912},  {89, 1536, 24, 101376},
    {90, 2048, 32, 232448}, {100, 2048, 32, 232448}, {120, 1536, 24, 101376}};

struct Card {
  const char *name, *title;
  int sm, multiprocessors;
  int64_t memory, l2_cache;  // bytes
  int64_t clock_khz, memory_clock_khz;
  double bandwidth;                                    // bytes per second
  double flops_f32, flops_tf32, flops_f16, flops_f64;  // FLOPs per second
};

// Memory: cudaDeviceProp::totalGlobalMem; docs/reference/devices.md says of each card who reported it. Rates: the vendor's
// data sheets, dense, without sparsity. Clocks: boost. PyTorch leaves TF32 off for matrix products unless asked.
// The first of an architecture stands for it where a described card leaves something out.
constexpr Card kCards[] = {
    {"h200", "NVIDIA H200", 90, 132, 150121480192, 62914560, 1980000, 3201000, 4800e9, 67e12, 494e12, 989e12,
     34e12},
    {"h100", "NVIDIA H100 80GB HBM3", 90, 132, 85017493504, 52428800, 1980000, 2619000, 3350e9, 67e12, 494e12,
     989e12, 34e12},
    {"a100", "NVIDIA A100-SXM4-80GB", 80, 108, 84987084800, 41943040, 1410000, 1593000, 2039e9, 19.5e12,
     156e12, 312e12, 9.7e12},
    {"l40s", "NVIDIA L40S", 89, 142, 47698673664, 100663296, 2520000, 9001000, 864e9, 91.6e12, 183e12, 362e12,
     1.4e12},
    {"rtx4090", "NVIDIA GeForce RTX 4090", 89, 128, 25251807232, 75497472, 2520000, 10501000, 1008e9, 82.6e12,
     82.6e12, 165e12, 1.3e12},
    {"t4", "Tesla T4", 75, 40, 15638462464, 4194304, 1590000, 5001000, 320e9, 8.1e12, 8.1e12, 65e12, 0.25e12},
    {"b200", "NVIDIA B200", 100, 148, 191502483456, 132120576, 1965000, 3996000, 8000e9, 75e12, 1100e12,
     2250e12, 37e12},
    {"gh200", "NVIDIA GH200 480GB", 90, 132, 101602820096, 62914560, 1980000, 2619000, 4000e9, 67e12, 494e12,
     989e12, 34e12},
    {"h20", "NVIDIA H20", 90, 78, 102010716160, 62914560, 1980000, 2619000, 4000e9, 44e12, 74e12, 148e12,
     1e12},
    {"h100-nvl", "NVIDIA H100 NVL", 90, 132, 99456909312, 52428800, 1785000, 2619000, 3900e9, 60e12, 418e12,
     835e12, 30e12},
    {"h100-pcie", "NVIDIA H100 PCIe", 90, 114, 84943044608, 52428800, 1755000, 1593000, 2000e9, 51e12, 378e12,
     756e12, 26e12},
    {"a100-40g", "NVIDIA A100-SXM4-40GB", 80, 108, 42284875776, 41943040, 1410000, 1215000, 1555e9, 19.5e12,
     156e12, 312e12, 9.7e12},
    {"a30", "NVIDIA A30", 80, 56, 25105006592, 25165824, 1440000, 1215000, 933e9, 10.3e12, 82e12, 165e12,
     5.2e12},
    {"v100", "Tesla V100-SXM2-32GB", 70, 80, 34089205760, 6291456, 1530000, 877000, 900e9, 15.7e12, 15.7e12,
     125e12, 7.8e12},
    {"v100-16g", "Tesla V100-SXM2-16GB", 70, 80, 16913530880, 6291456, 1530000, 877000, 900e9, 15.7e12,
     15.7e12, 125e12, 7.8e12},
    {"rtx8000", "Quadro RTX 8000", 75, 72, 50961842176, 6291456, 1770000, 7001000, 672e9, 16.3e12, 16.3e12,
     130e12, 0.51e12},
    {"rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 75, 68, 11554258944, 5767168, 1545000, 7000000, 616e9,
     13.4e12, 13.4e12, 53.8e12, 0.42e12},
    {"a40", "NVIDIA A40", 86, 84, 47622127616, 6291456, 1740000, 7251000, 696e9, 37.4e12, 74.8e12, 149.7e12,
     0.58e12},
    {"a10g", "NVIDIA A10G", 86, 80, 23684186112, 6291456, 1710000, 6251000, 600e9, 35e12, 35e12, 70e12,
     0.98e12},
    {"a10", "NVIDIA A10", 86, 72, 23610785792, 6291456, 1695000, 6251000, 600e9, 31.2e12, 62.5e12, 125e12,
     0.98e12},
    {"a6000", "NVIDIA RTX A6000", 86, 84, 51040485376, 6291456, 1800000, 8001000, 768e9, 38.7e12, 77.4e12,
     154.8e12, 0.6e12},
    {"a5000", "NVIDIA RTX A5000", 86, 64, 25285361664, 6291456, 1695000, 8001000, 768e9, 27.8e12, 55.6e12,
     111e12, 0.43e12},
    {"a4000", "NVIDIA RTX A4000", 86, 48, 16760438784, 4194304, 1560000, 7001000, 448e9, 19.2e12, 38.3e12,
     76.7e12, 0.3e12},
    {"rtx3090ti", "NVIDIA GeForce RTX 3090 Ti", 86, 84, 25437405184, 6291456, 1860000, 10501000, 1008e9,
     40e12, 40e12, 80e12, 0.62e12},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 86, 82, 25437405184, 6291456, 1695000, 9751000, 936e9, 35.6e12,
     35.6e12, 71e12, 0.56e12},
    {"rtx3080ti", "NVIDIA GeForce RTX 3080 Ti", 86, 80, 12510560256, 6291456, 1665000, 9501000, 912e9,
     34.1e12, 34.1e12, 68e12, 0.53e12},
    {"rtx3080", "NVIDIA GeForce RTX 3080", 86, 68, 10363076608, 5242880, 1710000, 9501000, 760e9, 29.8e12,
     29.8e12, 59.5e12, 0.46e12},
    {"rtx3070", "NVIDIA GeForce RTX 3070", 86, 46, 8215592960, 4194304, 1725000, 7001000, 448e9, 20.3e12,
     20.3e12, 40.6e12, 0.32e12},
    {"rtx3060", "NVIDIA GeForce RTX 3060", 86, 28, 12510560256, 3145728, 1777000, 7501000, 360e9, 12.7e12,
     12.7e12, 25.5e12, 0.2e12},
    {"agx-orin", "Orin", 87, 14, 32109494272, 4194304, 930000, 3200000, 204.8e9, 3.3e12, 6.7e12, 27e12,
     0.05e12},
    {"l40", "NVIDIA L40", 89, 142, 47674556416, 100663296, 2490000, 9001000, 864e9, 90.5e12, 90.5e12, 181e12,
     1.4e12},
    {"l4", "NVIDIA L4", 89, 58, 23610785792, 50331648, 2040000, 6251000, 300e9, 30.3e12, 60e12, 121e12,
     0.47e12},
    {"rtx6000ada", "NVIDIA RTX 6000 Ada Generation", 89, 142, 50865307648, 100663296, 2505000, 10001000,
     960e9, 91.1e12, 182e12, 364e12, 1.4e12},
    {"rtx4080super", "NVIDIA GeForce RTX 4080 SUPER", 89, 80, 16828596224, 67108864, 2550000, 11501000, 736e9,
     52.2e12, 52.2e12, 104e12, 0.82e12},
    {"rtx4080", "NVIDIA GeForce RTX 4080", 89, 76, 16828596224, 67108864, 2505000, 11201000, 717e9, 48.7e12,
     48.7e12, 97.5e12, 0.76e12},
    {"rtx4070tisuper", "NVIDIA GeForce RTX 4070 Ti SUPER", 89, 66, 16708009984, 50331648, 2610000, 10501000,
     672e9, 44.1e12, 44.1e12, 88.2e12, 0.69e12},
    {"rtx4070ti", "NVIDIA GeForce RTX 4070 Ti", 89, 60, 12450791424, 50331648, 2610000, 10501000, 504e9,
     40.1e12, 40.1e12, 80.2e12, 0.63e12},
    {"rtx4070", "NVIDIA GeForce RTX 4070", 89, 46, 12450791424, 37748736, 2475000, 10501000, 504e9, 29.1e12,
     29.1e12, 58.3e12, 0.46e12},
    {"rtx4060ti-16g", "NVIDIA GeForce RTX 4060 Ti", 89, 34, 16708009984, 33554432, 2535000, 9001000, 288e9,
     22.1e12, 22.1e12, 44.1e12, 0.34e12},
    {"rtx4060", "NVIDIA GeForce RTX 4060", 89, 24, 8113881088, 25165824, 2460000, 8501000, 272e9, 15.1e12,
     15.1e12, 30.2e12, 0.24e12},
    {"rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 120, 188, 101974016000, 134217728, 2430000,
     12481000, 1597e9, 117e12, 234e12, 469e12, 1.8e12},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 120, 170, 33672921088, 100663296, 2407000, 14001000, 1792e9,
     104.8e12, 104.8e12, 209.5e12, 1.64e12},
    {"rtx5080", "NVIDIA GeForce RTX 5080", 120, 84, 16493051904, 67108864, 2617000, 15001000, 960e9, 56.3e12,
     56.3e12, 112.6e12, 0.88e12},
    {"rtx5070ti", "NVIDIA GeForce RTX 5070 Ti", 120, 70, 16493051904, 50331648, 2452000, 14001000, 896e9,
     43.9e12, 43.9e12, 87.9e12, 0.69e12},
};

Hardware hardware_of(const Card& card) {
  Hardware hardware{.name = card.name,
                    .title = card.title,
                    .sm = card.sm,
                    .multiprocessors = card.multiprocessors,
                    .memory = {card.memory},
                    .l2_cache = {card.l2_cache},
                    .clock_khz = card.clock_khz,
                    .memory_clock_khz = card.memory_clock_khz,
                    .bandwidth = card.bandwidth,
                    .flops_f32 = card.flops_f32,
                    .flops_tf32 = card.flops_tf32,
                    .flops_f16 = card.flops_f16,
                    .flops_f64 = card.flops_f64};
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.sm != card.sm) continue;
    hardware.threads_per_multiprocessor = architecture.threads_per_multiprocessor;
    hardware.blocks_per_multiprocessor = architecture.blocks_per_multiprocessor;
    hardware.shared_memory_per_block = architecture.shared_memory_per_block;
  }
  return hardware;
}

std::vector<Hardware> all_hardware() {
  std::vector<Hardware> all;
  for (const Card& card : kCards) all.push_back(hardware_of(card));
  all.push_back({.name = "cpu",
                 .title = "CPU",
                 .type = DeviceType::cpu,
                 .memory = {25769803776},
                 .bandwidth = 5e10,
                 .flops_f32 = 1e12,
                 .flops_tf32 = 1e12,
                 .flops_f16 = 1e12,
                 .flops_f64 = 5e11});
  return all;
}

}  // namespace

const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> known = all_hardware();
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
