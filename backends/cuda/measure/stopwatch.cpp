#include "backends/cuda/measure/stopwatch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace metaprof::cuda {
namespace {

constexpr double kMostRepetitions = 10000;

Sampled summary(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return {.median = seconds[seconds.size() / 2],
          .least = seconds.front(),
          .most = seconds.back(),
          .samples = static_cast<int>(seconds.size())};
}

// `once`: the seconds of so many repetitions.
template <class Timed>
std::optional<Sampled> sample(const CudaDevice& device, const Effort& effort,
                              const std::function<void()>& work, const Timed& timed) {
  work();
  device.synchronize();
  if (device.is_emulated()) return std::nullopt;
  const double once = timed(1);
  const auto repetitions = static_cast<int>(
      std::clamp(std::ceil(effort.seconds_of_sample / std::max(once, 1e-7)), 1.0, kMostRepetitions));
  std::vector<double> seconds(static_cast<size_t>(effort.samples));
  for (double& one : seconds) one = timed(repetitions) / repetitions;
  return summary(seconds);
}

}  // namespace

std::optional<Sampled> time_on(const CudaDevice& device, const Effort& effort,
                               const std::function<void()>& work) {
  const CudaEvent begin, end;
  return sample(device, effort, work, [&](int repetitions) {
    begin.record(nullptr);
    for (int i = 0; i < repetitions; ++i) work();
    end.record(nullptr);
    end.synchronize();
    return end.seconds_since(begin);
  });
}

std::optional<Sampled> time_on_host(const CudaDevice& device, const Effort& effort,
                                    const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  return sample(device, effort, work, [&](int repetitions) {
    const auto begin = Clock::now();
    for (int i = 0; i < repetitions; ++i) work();
    return std::chrono::duration<double>(Clock::now() - begin).count();
  });
}

}  // namespace metaprof::cuda
