// Connectionist temporal classification (aten/src/ATen/native/LossCTC.cpp and cuda/LossCTC.cu, PyTorch 2.11).

#include <fmt/format.h>

#include <limits>

#include "meta/autograd/engine/backward.h"
#include "meta/ops/losses/family.h"
#include "meta/ops/rules/formulas.h"

namespace metaprof {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- the kernels: probabilities of all prefixes, with blanks between

void ctc_meta(Call& c) {
  const Tensor& log_probs = c.tensor("log_probs");
  const Sizes& lengths = c.ints("target_lengths");
  if (log_probs.dim() != 3 || int64_t(lengths.size()) != log_probs.size(1))
    c.error(
        fmt::format("expects a length for each sequence of {}, got {}", describe(log_probs), lengths.size()));
  int64_t longest = 0;
  for (int64_t length : lengths) longest = std::max(longest, length);
  c.output(Sizes{log_probs.size(1)}, log_probs.dtype());
  c.output(Sizes{log_probs.size(1), log_probs.size(0), 2 * longest + 1}, log_probs.dtype());
}

// Lengths and where targets begin, as tensors of the device.
struct Lengths {
  explicit Lengths(Call& c) {
    const Sizes each{c.tensor("log_probs").size(1)};
    inputs = c.temporary(each, DType::i64);
    targets = c.temporary(each, DType::i64);
    begins = c.temporary(each, DType::i64);
  }
  Tensor begins, inputs, targets;
};

void ctc_cuda(Call& c) {
  const Lengths lengths(c);
  c.allocate(1);
  c.allocate(0);
}

void ctc_backward_meta(Call& c) {
  const Tensor& log_probs = c.tensor("log_probs");
  c.output(log_probs.sizes(), log_probs.dtype());
}

void ctc_backward_cuda(Call& c) {
  const Lengths lengths(c);
  const Tensor& alpha = c.tensor("log_alpha");
  const Tensor beta = c.temporary(alpha.sizes(), alpha.dtype());
  c.allocate(0);
}

// --- ctc_loss

// The lengths' mean divides; what they are does not matter here.
Tensor length_numbers(Call& c, const Tensor& losses, const Sizes& lengths) {
  const Value first = lengths.empty() ? 1 : lengths[0];
  return call<"full">(c.session, losses.sizes(), first, losses.dtype(), Value(), losses.device());
}

void check_library(Call& c, const Tensor& log_probs, const Tensor& targets) {
  if (log_probs.device().is_cuda() && log_probs.dtype() == DType::f32 && targets.dtype() == DType::i32 &&
      targets.dim() == 1 && c.integer("blank") == 0)
    c.error("cuDNN's loss, for targets of 32 bits in one dimension, is not modelled");
}

void ctc_loss(Call& c, const Sizes& input_lengths, const Sizes& target_lengths) {
  Session& s = c.session;
  const bool batched = c.tensor("log_probs").dim() == 3;
  const Tensor log_probs = batched ? c.tensor("log_probs") : unsqueeze(c.tensor("log_probs"), 1);
  check_library(c, log_probs, c.tensor("targets"));
  const Tensor targets = call<"to.device">(s, c.tensor("targets"), log_probs.device(), DType::i64);
  Tensor losses = call_all<"_ctc_loss">(s, log_probs, targets, input_lengths, target_lengths, c["blank"],
                                        c["zero_infinity"])[0];
  if (c.boolean("zero_infinity")) {
    const Tensor zero = zeros_of(losses, Sizes{}), infinite = eq(losses, kInfinity);
    losses = where(infinite, zero, losses);
  }
  if (c.integer("reduction") == 2) return c.result(sum(losses));
  if (c.integer("reduction") == 0) return c.result(batched ? losses : squeeze(losses, 0));
  const Tensor lengths = call<"clamp_min">(s, length_numbers(c, losses, target_lengths), 1);
  const Tensor each = losses / lengths;
  c.result(mean(each));
}

void ctc_loss_body(Call& c) { ctc_loss(c, c.ints("input_lengths"), c.ints("target_lengths")); }

// Lengths in tensors are data. Padded targets count as long as the padding allows, targets one after the
// other as equally long.
void ctc_loss_tensors_body(Call& c) {
  const Tensor &targets = c.tensor("targets"), &log_probs = c.tensor("log_probs");
  const int64_t sequences = std::max<int64_t>(1, c.tensor("target_lengths").numel());
  if (sequences != 1 && (log_probs.dim() < 3 || sequences != log_probs.size(1)))
    c.error(fmt::format("expects a length for each sequence of {}, got {}", describe(log_probs), sequences));
  const int64_t length = targets.dim() == 2 ? targets.size(1) : (targets.numel() + sequences - 1) / sequences;
  ctc_loss(c, Sizes(size_t(sequences), log_probs.size(0)), Sizes(size_t(sequences), length));
}

constexpr Op kSequenceLoss[] = {
    {.schema = "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
               "blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
     .summary = "−log of the probability of targets, with blanks anywhere between",
     .meta = ctc_meta,
     .host_code = {{DeviceType::cuda, ctc_cuda}},
     .derivatives = {{{"log_probs"},
                      {"log_probs", "targets", "result0", "result1"},
                      [](Backward& b) {
                        return call<"_ctc_loss_backward">(
                            b.session, b.grad(), b("log_probs"), b("targets"), b["input_lengths"],
                            b["target_lengths"], b("result0"), b("result1"), b["blank"], b["zero_infinity"]);
                      }}},
     .flops = [](const Call& c) -> FlopCount { return {.own = 8 * c.result_tensor(1).numel()}; },
     .examples = {"f32[6,2,8] i64[2,3] (6 6) (3 3)"},
     .facts = {.cudagraph_unsafe = true, .no_gradient_for = {"result1"}}},
    {.schema = "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
               "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool "
               "zero_infinity=False) -> Tensor",
     .summary = "gradient of log_probs",
     .meta = ctc_backward_meta,
     .host_code = {{DeviceType::cuda, ctc_backward_cuda}},
     .derivatives = not_differentiable,
     .flops = [](const Call& c) -> FlopCount {
       return {.own = 8 * c.tensor("log_alpha").numel() + 4 * c.result_tensor().numel()};
     },
     .examples = {"f32[2] f32[6,2,8] i64[2,3] (6 6) (3 3) f32[2] f32[2,6,7] 0"}},
    composite_of("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
                 "target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
                 "−log of the probability of targets, reduced", ctc_loss_body,
                 {"f32[6,2,8] i64[2,3] (6 6) (3 3)", "f32[6,4] i64[3] (6) (3) 0 0 True"},
                 {.cudagraph_unsafe = true}),
    composite_of("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor "
                 "target_lengths, int blank=0, int reduction=1, bool zero_infinity=False) -> Tensor",
                 "−log of the probability of targets, reduced", ctc_loss_tensors_body,
                 {"f32[6,2,8] i64[2,3] i64[2] i64[2]"}, {.cudagraph_unsafe = true, .reads_data = true})};

}  // namespace

Tables sequence_loss_operators() {
  static constexpr Records tables[] = {kSequenceLoss};
  return tables;
}

}  // namespace metaprof
