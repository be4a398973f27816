#include "meta/platform/outside_allocator.h"

#include <fmt/format.h>

#include <cstdlib>

namespace metaprof {
namespace {

// A context holds local memory for every thread that can be resident: cudaLimitStackSize, 1 KiB by default, times
// the threads. That follows from the card.
constexpr int64_t kStackOfThread = 1024;

// The rest depends on the architecture: the driver's own memory, and the kernels that a process has loaded, for
// which PyTorch has asked lazily since 1.13 (pytorch#86509: 274 MiB in place of 636). In MiB, from messages of
// out-of-memory errors of processes with one card: "this process has … in use", less what is allocated and what is
// reserved but unallocated, less the local memory of the card named. Their numbers are rounded to about 10 MiB.
struct Reported {
  int sm;
  int least, most;
  const char* source;
};
constexpr Reported kReported[] = {
    // Titan V: 319 MiB of a bare context, 160 of them local memory; kernels add at most 88 as on 8.9.
    {70, 159, 247, "pytorch#28394, a bare context"},
    // T4: 102 to 141 in use, 40 local; RTX 2080 Ti: 195, 68 local.
    {75, 62, 127, "Open-Sora#697, GenerateU#10, CatVTON#133, FramePack#369"},
    // A100: 409 to 512 in use, 216 local.
    {80, 193, 296, "VAREdit#6, CoSeR#10, Control-GIC#6, Keye#11, Mask2DiT#4"},
    // A10: 224, 108 local; A10G: 282, 120 local; RTX A4000: 210, 72 local.
    {86, 116, 162, "CogVLM#236, torchtune#229, VGGT-Long#6"},
    // RTX 6000 Ada, a bare context: 426, 213 local; RTX 4090: 473 to 503, 192 local; L40, L40S: 507 to 514, 213 local.
    {89, 213, 311,
     "unsloth-zoo#1053, flux-webui#11, torchchat#1341, Phidias-Diffusion#8, Qwen3-VL#2097, "
     "sentence-transformers#3214"},
    // H100 NVL: 676, 264 local. H200, measured: 628 without products of cuBLAS to 762 with them and cuDNN, 264 local.
    {90, 364, 498, "VACE#56, and an H200 measured with PyTorch 2.11"},
    // RTX 5090: 595 to 619, 255 local.
    {120, 340, 364, "Wan2.1#465, TrajectoryCrafter#20"},
};

const Reported& nearest(int sm) {
  const Reported* nearest = &kReported[0];
  for (const Reported& reported : kReported)
    if (std::abs(reported.sm - sm) < std::abs(nearest->sm - sm)) nearest = &reported;
  return *nearest;
}

}  // namespace

OutsideAllocator outside_allocator(const Platform& platform) {
  const Hardware& card = platform.hardware;
  if (card.is_cpu()) return {};
  const Hardware& counted = card.multiprocessors > 0 ? card : nearest_hardware(card);
  const int64_t local =
      kStackOfThread * counted.threads_per_multiprocessor * int64_t{counted.multiprocessors};
  const Reported& reported = nearest(card.sm);
  std::string source = fmt::format("reports for compute capability {}.{} and PyTorch 2.1 to 2.10 ({})",
                                   reported.sm / 10, reported.sm % 10, reported.source);
  if (reported.sm != card.sm) source += fmt::format("; of {}.{} there is none", card.sm / 10, card.sm % 10);
  return {.least = {local + (int64_t{reported.least} << 20)},
          .most = {local + (int64_t{reported.most} << 20)},
          .source = source};
}

OutsideAllocator outside_allocator(const Platform& platform, Bytes measured) {
  const Reported& reported = nearest(platform.hardware.sm);
  const int kernels = reported.most - reported.least;
  return {.least = measured,
          .most = measured + Bytes{int64_t{kernels} << 20},
          .source = fmt::format("measured on the device, and up to {} MiB for kernels of PyTorch", kernels)};
}

}  // namespace metaprof
