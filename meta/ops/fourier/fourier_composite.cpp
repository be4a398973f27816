// torch.fft (aten/src/ATen/native/SpectralOps.cpp, PyTorch 2.11): which transforms a call is made of.

#include <fmt/format.h>

#include <numeric>

#include "meta/ops/fourier/family.h"
#include "meta/ops/fourier/fourier.h"
#include "meta/ops/rules/conjugates.h"
#include "meta/ops/rules/formulas.h"
#include "meta/ops/rules/iterator.h"

namespace metaprof {
namespace {

int64_t normalization(const Call& c, bool forward) {
  if (!c.given("norm") || c["norm"].string() == "backward") return forward ? none : by_n;
  if (c["norm"].string() == "forward") return forward ? by_n : none;
  if (c["norm"].string() == "ortho") return by_root_n;
  c.error(fmt::format("norm must be \"backward\", \"ortho\" or \"forward\"; got \"{}\"", c["norm"].string()));
}

Tensor as_complex(const Tensor& t) { return to(t, complex_type(to_floating(t.dtype()))); }
Tensor as_real(const Tensor& t) { return to(t, to_floating(t.dtype())); }

// Cuts or pads dimensions to these sizes; −1 leaves one as it is.
Tensor resized(const Call& c, Tensor x, SizesView dims, SizesView sizes) {
  Sizes padding(size_t(2 * x.dim()), 0);
  bool pads = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (sizes[i] == -1) continue;
    if (sizes[i] < 1) c.error(fmt::format("the size of a transform must be at least 1, got {}", sizes[i]));
    const int64_t have = x.size(dims[i]);
    if (have < sizes[i]) {
      pads = true;
      padding[padding.size() - 2 * size_t(dims[i]) - 1] = sizes[i] - have;
    } else if (have > sizes[i]) {
      x = call<"slice.Tensor">(c.session, x, dims[i], 0, sizes[i]);
    }
  }
  return pads ? call<"constant_pad_nd">(c.session, x, padding) : x;
}

// --- one dimension

struct OneDim {
  int64_t dim, size;
};

OneDim one_dim(const Call& c, const Tensor& self) {
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  if (self.dim() == 0) c.error("needs at least one dimension");
  return {dim, c.given("n") ? c.integer("n") : self.size(dim)};
}

template <bool forward>
void complex_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const bool real = !is_complex(self.dtype());
  const OneDim d = one_dim(c, self);
  Tensor x = real ? as_real(self) : self;
  if (c.given("n")) x = resized(c, x, Sizes{d.dim}, Sizes{d.size});
  if (!real) return c.result(fft_c2c(x, Sizes{d.dim}, normalization(c, forward), forward));
  const Tensor out = fft_r2c(x, Sizes{d.dim}, normalization(c, forward), false);
  c.result(forward ? out : conj(out));
}

template <bool forward>
void real_body(Call& c) {
  const OneDim d = one_dim(c, c.tensor("self"));
  Tensor x = as_real(c.tensor("self"));
  if (c.given("n")) x = resized(c, x, Sizes{d.dim}, Sizes{d.size});
  const Tensor out = fft_r2c(x, Sizes{d.dim}, normalization(c, forward), true);
  c.result(forward ? out : conj(out));
}

template <bool forward>
void to_real_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const int64_t dim = wrap_dim(c.integer("dim"), self.dim());
  if (self.dim() == 0) c.error("needs at least one dimension");
  const int64_t size = c.given("n") ? c.integer("n") : 2 * (self.size(dim) - 1);
  Tensor x = as_complex(self);
  if (c.given("n")) x = resized(c, x, Sizes{dim}, Sizes{size / 2 + 1});
  const int64_t norm = normalization(c, forward);
  c.result(forward ? fft_c2r(conj(x), Sizes{dim}, norm, size) : fft_c2r(x, Sizes{dim}, norm, size));
}

// --- several dimensions

struct ManyDims {
  Sizes dims, sizes;  // wanted sizes
};

ManyDims many_dims(const Call& c, const Tensor& self) {
  ManyDims out;
  if (c.given("dim")) {
    for (int64_t d : c.ints("dim")) out.dims.push_back(wrap_dim(d, self.dim()));
  }
  if (!c.given("s")) {
    if (!c.given("dim")) {
      out.dims = Sizes(size_t(self.dim()));
      std::iota(out.dims.begin(), out.dims.end(), 0);
    }
    for (int64_t d : out.dims) out.sizes.push_back(self.size(d));
    return out;
  }
  const Sizes& wanted = c.ints("s");
  if (!c.given("dim"))  // the last dimensions
    for (size_t i = 0; i < wanted.size(); ++i) out.dims.push_back(self.dim() - int64_t(wanted.size() - i));
  if (out.dims.size() != wanted.size() || wanted.size() > size_t(self.dim()))
    c.error(fmt::format("needs a size per dimension; got {} sizes and {} dimensions", wanted.size(),
                        std::min(out.dims.size(), size_t(self.dim()))));
  for (size_t i = 0; i < wanted.size(); ++i)
    out.sizes.push_back(wanted[i] == -1 ? self.size(out.dims[i]) : wanted[i]);
  return out;
}

struct LastDim {
  ManyDims half;  // the last dimension cut to the half that decides the rest
  int64_t last_size;
};

LastDim last_dim(const Call& c, const Tensor& self) {
  LastDim out{many_dims(c, self), 0};
  if (out.half.dims.empty()) c.error("needs at least one dimension");
  const bool chosen = c.given("s") && c.ints("s").back() != -1;
  int64_t& last = out.half.sizes.back();
  out.last_size = chosen ? last : 2 * (last - 1);
  last = out.last_size / 2 + 1;
  return out;
}

Sizes all_but_last(const Sizes& dims) { return Sizes(dims.begin(), dims.end() - 1); }

template <bool forward>
void complex_many_body(Call& c) {
  const ManyDims d = many_dims(c, c.tensor("self"));
  const Tensor input = as_complex(c.tensor("self"));
  const Tensor x = resized(c, input, d.dims, d.sizes);
  c.result(fft_c2c(x, d.dims, normalization(c, forward), forward));
}

void real_many_body(Call& c) {
  const ManyDims d = many_dims(c, c.tensor("self"));
  if (d.dims.empty()) c.error("needs at least one dimension");
  const Tensor x = resized(c, as_real(c.tensor("self")), d.dims, d.sizes);
  c.result(fft_r2c(x, d.dims, normalization(c, true), true));
}

void to_real_many_body(Call& c) {
  const Tensor input = as_complex(c.tensor("self"));
  const LastDim d = last_dim(c, input);
  const Tensor x = resized(c, input, d.half.dims, d.half.sizes);
  c.result(fft_c2r(x, d.half.dims, normalization(c, false), d.last_size));
}

void hermitian_many_body(Call& c) {
  const Tensor input = as_complex(c.tensor("self"));
  const LastDim d = last_dim(c, input);
  Tensor x = resized(c, input, d.half.dims, d.half.sizes);
  const int64_t norm = normalization(c, true);
  if (d.half.dims.size() > 1) x = fft_c2c(x, all_but_last(d.half.dims), norm, true);
  c.result(fft_c2r(conj(x), Sizes{d.half.dims.back()}, norm, d.last_size));
}

void inverse_hermitian_many_body(Call& c) {
  const ManyDims d = many_dims(c, c.tensor("self"));
  if (d.dims.empty()) c.error("needs at least one dimension");
  const Tensor x = resized(c, as_real(c.tensor("self")), d.dims, d.sizes);
  const int64_t norm = normalization(c, false);
  Tensor half = fft_r2c(x, Sizes{d.dims.back()}, norm, true);
  if (d.dims.size() == 1) return c.result(conj(half));
  half = call<"conj_physical">(c.session, half);
  c.result(fft_c2c(half, all_but_last(d.dims), norm, false));
}

template <bool inverse>
void shift_body(Call& c) {
  const Tensor& self = c.tensor("self");
  Sizes dims, shifts;
  if (c.given("dim")) {
    for (int64_t d : c.ints("dim")) dims.push_back(wrap_dim(d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  for (int64_t d : dims) shifts.push_back((self.size(d) + (inverse ? 1 : 0)) / 2);
  c.result(call<"roll">(c.session, self, shifts, dims));
}

constexpr Op kFourierComposite[] = {
    composite_of("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "Fourier transform", complex_body<true>, {"f32[2,8]"}),
    composite_of("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "inverse Fourier transform", complex_body<false>, {"c64[2,8]"}),
    composite_of("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "the first half of the Fourier transform of real numbers", real_body<true>, {"f32[2,8]"}),
    composite_of("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "inverse of fft_hfft", real_body<false>, {"f32[2,8]"}),
    composite_of("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "inverse of fft_rfft", to_real_body<false>, {"c64[2,5]"}),
    composite_of("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
                 "Fourier transform whose result is real", to_real_body<true>, {"c64[2,5]"}),
    composite_of("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "Fourier transform over two dimensions", complex_many_body<true>, {"f32[4,8]"}),
    composite_of("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "its inverse", complex_many_body<false>, {"f32[4,8]"}),
    composite_of("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "Fourier transform over several dimensions", complex_many_body<true>, {"f32[4,8]"}),
    composite_of("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "its inverse", complex_many_body<false>, {"f32[4,8]"}),
    composite_of("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "the first half of the transform of real numbers", real_many_body, {"f32[4,8]"}),
    composite_of("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "the first half of the transform of real numbers", real_many_body, {"f32[4,8]"}),
    composite_of("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "its inverse", to_real_many_body, {"c64[4,5]"}),
    composite_of("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "its inverse", to_real_many_body, {"c64[4,5]"}),
    composite_of("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "transform whose result is real", hermitian_many_body, {"c64[4,5]"}),
    composite_of("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "transform whose result is real", hermitian_many_body, {"c64[4,5]"}),
    composite_of("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
                 "its inverse", inverse_hermitian_many_body, {"f32[4,8]"}),
    composite_of("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
                 "its inverse", inverse_hermitian_many_body, {"f32[4,8]"}),
    composite_of("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", "the middle to the front",
                 shift_body<false>, {"f32[2,5]"}),
    composite_of("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", "its inverse", shift_body<true>,
                 {"f32[2,5]"})};

}  // namespace

Tables fourier_composite_operators() {
  static constexpr Records tables[] = {kFourierComposite};
  return tables;
}

}  // namespace metaprof
