// Headers of the standard library and of fmt that most files read, parsed once for the whole build
// (tools/cmake/MetaprofToolchain.cmake). Files still include what they use: clang-tidy and METAPROF_PRECOMPILE=OFF
// compile without this one.

#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
