#include "meta/platform/libraries.h"

#include <iterator>

#include "meta/platform/framework.h"

namespace metaprof {
namespace {

struct Wheel {
  int minor, cuda, cudnn;
};

// As the wheels on PyPI depend on them, newest first.
constexpr Wheel kWheels[] = {
    {15, 13020, 92600}, {14, 13000, 92400}, {13, 13000, 92000}, {12, 13000, 92000}, {11, 13000, 91900},
    {10, 12080, 91002}, {9, 12080, 91002},  {8, 12080, 91002},  {7, 12060, 90501},  {6, 12040, 90100},
};

}  // namespace

Libraries libraries_shipped_with(FrameworkVersion version) {
  for (const Wheel& wheel : kWheels)
    if (version >= FrameworkVersion{.major = 2, .minor = wheel.minor, .patch = 0})
      return {.cuda = wheel.cuda, .cudnn = wheel.cudnn};
  const Wheel& oldest = *std::prev(std::end(kWheels));
  return {.cuda = oldest.cuda, .cudnn = oldest.cudnn};
}

}  // namespace metaprof
