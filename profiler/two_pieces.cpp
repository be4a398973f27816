#include "profiler/two_pieces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace metaprof {
namespace {

using Point = std::pair<double, double>;

// Solves a symmetric system by Gaussian elimination with pivots; nothing if it is singular.
template <size_t n>
std::optional<std::array<double, n>> solve(std::array<std::array<double, n + 1>, n> a) {
  for (size_t column = 0; column < n; ++column) {
    size_t best = column;
    for (size_t row = column + 1; row < n; ++row)
      if (std::abs(a[row][column]) > std::abs(a[best][column])) best = row;
    if (std::abs(a[best][column]) < 1e-12) return std::nullopt;
    std::swap(a[best], a[column]);
    for (size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = a[row][column] / a[column][column];
      for (size_t k = column; k <= n; ++k) a[row][k] -= factor * a[column][k];
    }
  }
  std::array<double, n> x;
  for (size_t i = 0; i < n; ++i) x[i] = a[i][n] / a[i][i];
  return x;
}

struct Fit {
  double error = std::numeric_limits<double>::infinity();
  double intercept = 0, slope = 0, bend = 1,
         further = 0;  // y = intercept + slope x + further max(0, x - bend)
};

// Least squares in the basis 1, x and, with a bend, max(0, x - bend).
template <size_t n>
std::optional<Fit> fit(const std::vector<Point>& points, double bend) {
  std::array<std::array<double, n + 1>, n> system{};
  const auto basis = [&](double x) {
    std::array<double, n> values{};
    values[0] = 1;
    values[1] = x;
    if constexpr (n == 3) values[2] = std::max(0.0, x - bend);
    return values;
  };
  for (const auto& [x, y] : points) {
    const std::array<double, n> values = basis(x);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < n; ++k) system[i][k] += values[i] * values[k];
      system[i][n] += values[i] * y;
    }
  }
  const auto solution = solve<n>(system);
  if (!solution) return std::nullopt;
  Fit result{.error = 0, .intercept = (*solution)[0], .slope = (*solution)[1], .bend = bend, .further = 0};
  if constexpr (n == 3) result.further = (*solution)[2];
  for (const auto& [x, y] : points) {
    const double line = result.intercept + result.slope * x + result.further * std::max(0.0, x - bend);
    result.error += (line - y) * (line - y);
  }
  return result;
}

}  // namespace

TwoPieces fit_two_pieces(const std::vector<Point>& points) {
  const std::optional<Fit> straight = fit<2>(points, 1);
  if (!straight) return {};
  Fit best = *straight;
  for (const auto& [bend, y] : points) {
    if (bend <= 0 || bend >= 1) continue;
    const std::optional<Fit> bent = fit<3>(points, bend);
    if (bent && bent->error < best.error * (1 - 1e-9) - 1e-15) best = *bent;
  }
  if (best.further == 0) return {{best.slope}, {best.intercept}, {0, 1}};
  return {{best.slope, best.slope + best.further},
          {best.intercept, best.intercept - best.further * best.bend},
          {0, best.bend, 1}};
}

}  // namespace metaprof
