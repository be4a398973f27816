#include "meta/optim/optimizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/error.h"
#include "meta/optim/algorithm.h"
#include "meta/platform/platform.h"

namespace metaprof {
namespace {

// What a word may carry behind it, "-amsgrad"; bits, for what an optimizer takes of them.
enum Ending : uint8_t {
  kAmsgrad = 1,
  kCapturable = 2,
  kMaximize = 4,
  kDecay = 8,
  kDifferentiable = 16,
  kDecoupled = 32
};

struct EndingWord {
  std::string_view word;
  Ending ending;
  void (*set)(Settings&);
};

constexpr EndingWord kEndings[] = {
    {"-amsgrad", kAmsgrad, [](Settings& settings) { settings.amsgrad = true; }},
    {"-capturable", kCapturable, [](Settings& settings) { settings.capturable = true; }},
    {"-decoupled", kDecoupled, [](Settings& settings) { settings.decoupled = true; }},
    {"-differentiable", kDifferentiable, [](Settings& settings) { settings.differentiable = true; }},
    {"-maximize", kMaximize, [](Settings& settings) { settings.maximize = true; }},
    {"-wd", kDecay, [](Settings& settings) { settings.weight_decay = 0.01; }},
};

struct Known {
  std::string_view name;
  Maker make;
  Settings settings;
  int endings = 0;                ///< that it takes
  bool loops_by_default = false;  ///< "default" is the loop even on a GPU
  bool foreach = true;
  bool fused = false;
};

// The words and settings of recorded configurations. RMSprop: centered and decayed where it has momentum.
const std::vector<Known>& table() {
  constexpr int kTakes = kMaximize | kDifferentiable, kDecays = kTakes | kDecay,
                kCounts = kTakes | kCapturable, kCountsAndDecays = kCounts | kDecay,
                kAdamTakes = kAmsgrad | kCountsAndDecays, kVariantTakes = kDecoupled | kCountsAndDecays;
  const auto fused = [](Known known) {
    known.fused = true;
    return known;
  };
  static const std::vector<Known> kTable = {
      fused({"sgd", make_sgd, {}, kDecays}),
      fused({"sgd-momentum", make_sgd, {.momentum = 0.9}, kDecays}),
      fused({"sgd-nesterov", make_sgd, {.weight_decay = 1e-4, .momentum = 0.9, .nesterov = true}, kTakes}),
      fused({"adam", make_adam, {}, kAdamTakes}),
      fused({"adamw", make_adam, {.weight_decay = 0.01, .decoupled = true}, kAdamTakes}),
      {"sparse-adam", make_sparse_adam, {}, kMaximize, true, false},
      {"adamw-8bit", make_adam_8bit, {.weight_decay = 0.01, .decoupled = true}, 0, true, false},
      {"rmsprop", make_rmsprop, {}, kCountsAndDecays},
      {"rmsprop-momentum", make_rmsprop, {.weight_decay = 0.01, .momentum = 0.9, .centered = true}, kCounts},
      {"adagrad", make_adagrad, {}, kDecays},
      {"adadelta", make_adadelta, {}, kCountsAndDecays},
      {"adamax", make_adamax, {}, kCountsAndDecays},
      {"nadam", make_nadam, {}, kVariantTakes},
      {"radam", make_radam, {}, kVariantTakes},
      {"rprop", make_rprop, {}, kCounts},
      {"asgd", make_asgd, {}, kCountsAndDecays},
      {"adafactor", make_adafactor, {.weight_decay = 0.01}, kMaximize, true},
      {"muon", make_muon, {.weight_decay = 0.1, .momentum = 0.95, .nesterov = true}, 0, true, false},
  };
  return kTable;
}

// What a word means: that of the table with which it begins, and what follows that. Nothing: it has no meaning.
std::optional<Known> meaning(std::string_view name) {
  const Known* longest = nullptr;
  for (const Known& known : table())
    if (name.starts_with(known.name) && (!longest || known.name.size() > longest->name.size()))
      longest = &known;
  if (!longest) return std::nullopt;
  Known found = *longest;
  std::string_view rest = name.substr(found.name.size());
  int given = 0;
  while (!rest.empty()) {
    const auto* ending =
        std::ranges::find_if(kEndings, [&](const EndingWord& one) { return rest.starts_with(one.word); });
    if (ending == std::end(kEndings) || !(found.endings & ending->ending) || (given & ending->ending))
      return std::nullopt;
    given |= ending->ending;
    ending->set(found.settings);
    rest.remove_prefix(ending->word.size());
  }
  return found;
}

Known find(std::string_view name) {
  if (auto known = meaning(name)) return *known;
  fail("unknown optimizer '{}'; known are: {}; {}", name, fmt::join(known_optimizers(), ", "),
       optimizer_endings());
}

// In the order of the enumerators.
constexpr std::string_view kImplementations[] = {"default", "foreach", "for-loop", "fused"};

// What is differentiable is done by the loop, if nothing else is said (torch/optim/optimizer.py,
// _default_to_fused_or_foreach), but by SGD (torch/optim/sgd.py asks for its default as if it was not), whose foreach step
// does not refuse it.
void check_differentiable(const Known& known, OptimizerImpl wanted) {
  if (!known.settings.differentiable) return;
  if (wanted == OptimizerImpl::fused && known.fused)
    fail("optimizer '{}': `fused` does not support `differentiable`", known.name);
  if (wanted == OptimizerImpl::foreach && known.make != make_sgd)
    fail("optimizer '{}': _foreach ops don't support autograd", known.name);
}

Implementation choose(const Known& known, OptimizerImpl wanted, const Session& session) {
  const bool cuda = session.device.is_cuda();
  check_differentiable(known, wanted);
  switch (wanted) {
    case OptimizerImpl::standard:
      if (known.settings.differentiable && known.make != make_sgd) return Implementation::for_loop;
      return cuda && !known.loops_by_default ? Implementation::foreach : Implementation::for_loop;
    case OptimizerImpl::for_loop: return Implementation::for_loop;
    case OptimizerImpl::foreach:
      if (known.foreach) return Implementation::foreach;
      break;
    case OptimizerImpl::fused:
      if (known.fused) return Implementation::fused;
      break;
  }
  fail("optimizer '{}' has no implementation '{}' on {}", known.name, to_string(wanted),
       session.platform.hardware.name);
}

}  // namespace

bool has_fused_code(std::string_view name) { return find(name).fused; }

std::vector<std::string> known_optimizers() {
  std::vector<std::string> names;
  for (const Known& known : table()) names.emplace_back(known.name);
  return names;
}

bool is_optimizer(std::string_view name) { return meaning(name).has_value(); }

std::string_view optimizer_endings() {
  return "some with endings, as adamw-amsgrad-wd (docs/reference/command_line.md has them)";
}

bool step_can_be_captured(std::string_view name) {
  const Known known = find(name);
  const bool asks = known.make != make_sgd && known.make != make_adagrad && known.make != make_muon;
  return !asks || known.settings.capturable;
}

std::vector<std::string> known_implementations() {
  return {std::begin(kImplementations), std::end(kImplementations)};
}

std::string_view to_string(OptimizerImpl implementation) {
  return kImplementations[static_cast<size_t>(implementation)];
}

OptimizerImpl optimizer_impl_named(std::string_view word) {
  const auto* found = std::find(std::begin(kImplementations), std::end(kImplementations), word);
  if (found == std::end(kImplementations))
    fail("--optimizer-impl: '{}' is not one of: {}", word, fmt::join(kImplementations, ", "));
  return static_cast<OptimizerImpl>(found - std::begin(kImplementations));
}

Optimizer::Optimizer(Session& session, std::string_view name, OptimizerImpl implementation,
                     std::vector<Tensor> parameters)
    : session_(session), parameters_(std::move(parameters)) {
  const Known known = find(name);
  algorithm_ = known.make(session_, parameters_, known.settings, choose(known, implementation, session_));
}

Optimizer::~Optimizer() = default;

void Optimizer::step() {
  // _use_grad_for_differentiable
  Scoped<bool> grad(session_.modes.grad, algorithm_->differentiable());
  Scoped<Category> born_as(session_.category, Category::temporary);
  algorithm_->step();
}

void Optimizer::zero_grad(bool set_to_none) {
  Scoped<bool> no_grad(session_.modes.grad, false);
  for (const Tensor& parameter : parameters_) {
    if (!parameter->extra || !parameter->extra->grad) continue;
    if (set_to_none) {
      parameter->extra->grad.reset();
    } else {
      call<"zero_">(session_, parameter.grad());
    }
  }
}

bool Optimizer::steps_alike() const { return algorithm_->steps_alike(); }

bool Optimizer::takes_grad_scale() const { return algorithm_->fused(); }

void Optimizer::set_grad_scale(Tensor grad_scale, Tensor found_inf) {
  algorithm_->grad_scale = std::move(grad_scale);
  algorithm_->found_inf = std::move(found_inf);
}

}  // namespace metaprof
