// Windows of signals (aten/src/ATen/native/TensorFactories.cpp, PyTorch 2.11): numbers from 0 on, of which the window is
// made. A periodic one is made an element longer and shown without it.

#include <fmt/format.h>

#include "meta/ops/creation/family.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/no_gradient.h"

namespace metaprof {
namespace {

using Shape = Tensor (*)(Session&, const Tensor& numbers);

// In the memory of the numbers: cosines of Hann's and Hamming's, and the two halves of Bartlett's.
Tensor in_place_window(Session& session, const Tensor& numbers) {
  call<"cos_">(session, numbers);
  return numbers;
}

// Two cosines, their difference and a sum; `numbers` stays until the last of them is there.
Tensor blackman(Session& /*unused*/, const Tensor& numbers) {
  const Tensor fast = numbers * 4, slow = numbers * 2;
  const Tensor difference = fast - slow;
  return difference + 0.42;
}

Tensor kaiser(Session& session, const Tensor& numbers) {
  return session.empty(numbers.sizes(), numbers.dtype(), numbers.device());
}

template <Shape shape, bool says_whether_periodic>
void window_kernel(Call& c) {
  const BelowAutograd below(c.session);
  const int64_t length = c.integer("window_length");
  bool periodic = true;
  if constexpr (says_whether_periodic) periodic = c["periodic"].boolean();
  if (length < 0) c.error(fmt::format("expects a length that is not negative, got {}", length));
  const DType dtype = c.dtype("dtype", kDefaultDType);
  const Value device = c.given("device") ? c["device"] : Value(c.session.device);
  if (length < 2) {
    const Tensor window = call<"empty.memory_format">(c.session, Sizes{length}, dtype, Value(), device);
    return c.result(window);
  }
  const int64_t made = periodic ? length + 1 : length;
  const Tensor numbers = call<"arange">(c.session, made, dtype, Value(), device);
  const Tensor window = shape(c.session, numbers);
  c.result(periodic ? narrow(window, 0, 0, length) : window);
}

template <Shape shape>
constexpr Op window(std::string_view schema, std::string_view summary, std::string_view example) {
  return no_gradient(schema, summary, window_kernel<shape, false>, {example});
}
template <Shape shape>
constexpr Op periodic_window(std::string_view schema, std::string_view summary, std::string_view example) {
  return no_gradient(schema, summary, window_kernel<shape, true>, {example});
}

constexpr Op kWindows[] = {
    window<in_place_window>("bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? "
                            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                            "a triangle", "10"),
    periodic_window<in_place_window>(
        "bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "a triangle", "10 False"),
    window<blackman>("blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                     "Device? device=None, bool? pin_memory=None) -> Tensor",
                     "Blackman's sum of two cosines", "10"),
    periodic_window<blackman>(
        "blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Blackman's sum of two cosines", "10 False"),
    window<in_place_window>("hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, "
                            "Device? device=None, bool? pin_memory=None) -> Tensor",
                            "Hann's raised cosine", "10"),
    periodic_window<in_place_window>(
        "hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Hann's raised cosine", "10 False"),
    window<in_place_window>("hamming_window(int window_length, *, ScalarType? dtype=None, Layout? "
                            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                            "Hamming's raised cosine", "10"),
    periodic_window<in_place_window>(
        "hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Hamming's raised cosine", "10 False"),
    periodic_window<in_place_window>(
        "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Hamming's raised cosine", "10 True 0.5"),
    periodic_window<in_place_window>(
        "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, "
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Hamming's raised cosine", "10 True 0.5 0.5"),
    window<kaiser>("kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                   "device=None, bool? pin_memory=None) -> Tensor",
                   "Kaiser's window", "10"),
    periodic_window<kaiser>(
        "kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Kaiser's window", "10 False"),
    periodic_window<kaiser>(
        "kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
        "Kaiser's window", "10 True 12.0"),
};

}  // namespace

Tables window_operators() {
  static constexpr Records tables[] = {kWindows};
  return tables;
}

}  // namespace metaprof
