// Spectra of overlapping pieces of signals, and signals from them (aten/src/ATen/native/SpectralOps.cpp,
// PyTorch 2.11).

#include <fmt/format.h>

#include "meta/ops/fourier/family.h"
#include "meta/ops/fourier/fourier.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

struct Frames {
  int64_t size, hop, window;
};

Frames frames(const Call& c) {
  const int64_t size = c.integer("n_fft");
  const Frames f = {size, c.given("hop_length") ? c.integer("hop_length") : size / 4,
                    c.given("win_length") ? c.integer("win_length") : size};
  if (f.hop <= 0) c.error(fmt::format("hop_length must be positive, got {}", f.hop));
  if (f.window <= 0 || f.window > size)
    c.error(fmt::format("win_length must be between 1 and n_fft = {}, got {}", f.size, f.window));
  return f;
}

// --- stft

// The window in the middle of zeros; undefined: every element counts fully.
Tensor whole_window(Call& c, const Frames& f, const Tensor& signal) {
  const Tensor& window = c.tensor("window");
  if (f.window == f.size) return window;
  const DType dtype = window.defined() ? window.dtype() : signal.dtype();
  Tensor out = call<"zeros">(c.session, Sizes{f.size}, dtype, Value(), signal.device());
  const Tensor middle = call<"narrow">(c.session, out, 0, (f.size - f.window) / 2, f.window);
  if (window.defined()) {
    copy_(middle, window);
  } else {
    call<"fill_.Scalar">(c.session, middle, 1);
  }
  return out;
}

// Half a piece more at both ends.
Tensor centred(Call& c, const Tensor& signal, int64_t piece) {
  Sizes sizes;
  for (int64_t d = signal.dim(); d < 3; ++d) sizes.push_back(1);
  sizes.append(signal.sizes().begin(), signal.sizes().end());
  const Tensor wide = view(signal, sizes);
  const Tensor padded = call<"pad">(c.session, wide, Sizes{piece / 2, piece / 2}, c["pad_mode"]);
  return view(padded, Sizes(padded.sizes().begin() + (3 - signal.dim()), padded.sizes().end()));
}

Tensor pieces(Call& c, const Tensor& signal, const Frames& f) {
  if (signal.size(1) < f.size)
    c.error(fmt::format("n_fft must not be longer than the signal; got {} and {}", f.size, describe(signal)));
  const int64_t count = 1 + (signal.size(1) - f.size) / f.hop, step = signal.strides()[1];
  return as_strided(signal, Sizes{signal.size(0), count, f.size},
                    Sizes{signal.strides()[0], f.hop * step, step}, signal->offset);
}

Tensor spectra(Call& c, const Tensor& parts) {
  const int64_t norm = c.given("normalized") && c.boolean("normalized") ? by_root_n : none;
  if (is_complex(parts.dtype())) return fft_c2c(parts, Sizes{2}, norm, true);
  return fft_r2c(parts, Sizes{2}, norm, !c.given("onesided") || c.boolean("onesided"));
}

void stft_centred_body(Call& c) {
  const Tensor& self = c.tensor("self");
  const Frames f = frames(c);
  if (self.dim() < 1 || self.dim() > 2) c.error("expects one or two dimensions, got " + describe(self));
  if (c.given("align_to_window") && c.boolean("align_to_window")) c.error("align_to_window is not modelled");
  const bool complex_in =
      is_complex(self.dtype()) || (c.given("window") && is_complex(c.tensor("window").dtype()));
  if (!c.given("return_complex") && !complex_in) c.error("return_complex must be given for real signals");
  Tensor input = self.dim() == 1 ? unsqueeze(self, 0) : self;
  if (c.boolean("center")) input = centred(c, input, f.size);
  const Tensor window = whole_window(c, f, input);
  input = pieces(c, input, f);
  if (window.defined()) input = input * window;
  const Tensor out = spectra(c, input);
  call<"transpose_">(c.session, out, 1, 2);
  if (self.dim() == 1) call<"squeeze_.dim">(c.session, out, 0);
  const bool complex_out = !c.given("return_complex") || c.boolean("return_complex");
  c.result(complex_out ? out : call<"view_as_real">(c.session, out));
}

void stft_body(Call& c) {
  c.result(call<"stft.center">(c.session, c["self"], c["n_fft"], c["hop_length"], c["win_length"],
                               c["window"], false, "constant", c["normalized"], c["onesided"],
                               c["return_complex"], c["align_to_window"]));
}

// --- istft

// The window with zeros at both ends.
Tensor padded_window(Call& c, const Frames& f, const Tensor& spectrum) {
  Tensor window = c.tensor("window");
  if (!window.defined())
    window = call<"ones">(c.session, Sizes{f.window}, spectrum.dtype(), Value(), spectrum.device());
  if (f.window == f.size) return window;
  const int64_t left = (f.size - f.window) / 2;
  return call<"constant_pad_nd">(c.session, window, Sizes{left, f.size - f.window - left}, 0);
}

Tensor signal_pieces(Call& c, const Tensor& spectrum, const Frames& f, bool onesided) {
  const int64_t norm = c.boolean("normalized") ? by_root_n : by_n;
  Tensor input = call<"view_as_complex">(c.session, transpose(spectrum, 1, 2));
  if (c.boolean("return_complex")) return fft_c2c(input, Sizes{2}, norm, false);
  if (!onesided) input = call<"slice.Tensor">(c.session, input, -1, 0, f.size / 2 + 1);
  return fft_c2r(input, Sizes{2}, norm, f.size);
}

// Pieces laid over each other and added.
Tensor overlapped(Call& c, const Tensor& parts, const Frames& f, int64_t length) {
  return call<"unfold_backward">(c.session, parts, Sizes{parts.size(0), length}, 1, f.size, f.hop);
}

// Where windows add up to nothing the signal is lost: an error, which the device knows.
Tensor check_envelope(const Tensor& envelope) {
  Tensor lost;
  {
    const Tensor magnitudes = abs(envelope), smallest = call<"min">(session_of(envelope), magnitudes);
    lost = lt(smallest, 1e-11);
  }
  const Tensor one = call<"new_ones">(session_of(lost), lost, Sizes{}, DType::b8);
  call_all<"equal">(session_of(lost), lost, one);
  return lost;
}

void istft_body(Call& c) {
  Session& s = c.session;
  const Tensor& self = c.tensor("self");
  const Frames f = frames(c);
  if (self.dim() < 2 || self.dim() > 3) c.error("expects two or three dimensions, got " + describe(self));
  const bool onesided = c.given("onesided") ? c.boolean("onesided") : self.size(-2) != f.size;
  if (self.size(-2) != (onesided ? f.size / 2 + 1 : f.size))
    c.error(fmt::format("the spectrum of n_fft = {} has another size than {}", f.size, describe(self)));
  Tensor input = call<"view_as_real">(s, call<"resolve_conj">(s, self));
  Tensor window = padded_window(c, f, input);
  if (self.dim() == 2) input = unsqueeze(input, 0);
  const int64_t count = self.size(-1), hops = multiply(f.hop, count - 1),
                length = f.size + std::min(hops, INT64_MAX - f.size);
  input = signal_pieces(c, input, f, onesided);
  const Tensor weighted = input * view(window, Sizes{1, 1, f.size});
  Tensor out = overlapped(c, weighted, f, length);
  window = expand(pow(window, 2), Sizes{1, count, f.size});
  Tensor envelope = overlapped(c, window, f, length);
  const bool centre = c.boolean("center");
  const int64_t start = centre ? f.size / 2 : 0;
  const int64_t end = c.given("length") ? start + c.integer("length") : centre ? -(f.size / 2) : length;
  out = call<"slice.Tensor">(s, out, 1, start, end);
  envelope = call<"slice.Tensor">(s, envelope, 1, start, end);
  const Tensor lost = check_envelope(envelope);
  out = out / envelope;
  if (self.dim() == 2) out = squeeze(out, 0);
  if (end > length) out = call<"constant_pad_nd">(s, out, Sizes{0, end - length}, 0);
  c.result(out);
}

constexpr Op kSpectrogram[] = {
    composite_of("stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                 "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? "
                 "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor",
                 "spectra of overlapping pieces", stft_centred_body,
                 {"f32[2,40] 16 4 8 f32[8] True \"reflect\" True None False"}),
    composite_of("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                 "window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
                 "align_to_window=None) -> Tensor",
                 "spectra of overlapping pieces", stft_body, {"f32[40] 16 None None None False None False"}),
    composite_of("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                 "window=None, bool center=True, bool normalized=False, bool? onesided=None, int? "
                 "length=None, bool return_complex=False) -> Tensor",
                 "the signal of overlapping spectra", istft_body, {"c64[9,6] 16 4 16 f32[16]"},
                 {.reads_data = true})};

}  // namespace

Tables spectrogram_operators() {
  static constexpr Records tables[] = {kSpectrogram};
  return tables;
}

}  // namespace metaprof
