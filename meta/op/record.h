#pragma once
// The record of an operator: everything that the project knows about it, in one place. Families of operators
// (meta/ops) are lists of these.

#include <concepts>
#include <string_view>
#include <type_traits>
#include <vector>

#include "meta/op/schema.h"

namespace metaprof {

struct Call;
struct Backward;
using Gradients = SmallVector<Tensor, 4>;

/// FLOPs of one call, 2 per multiply-add.
struct FlopCount {
  int64_t counted = 0;  ///< what the framework's own counter (torch.utils.flop_counter, 2.11) says
  int64_t own = 0;      ///< by our own formula, only where the framework's counter has none
};

/// How an operator's results follow from its arguments: sizes, dtypes, strides, aliases; the same on every
/// device. A composite operator has a body instead, which calls other operators.
struct Meta {
  template <std::convertible_to<void (*)(Call&)> Function>
  Meta(Function run) : run(run) {}
  void (*run)(Call&);
  bool composite = false;
};
inline Meta composite(void (*body)(Call&)) {
  Meta meta(body);
  meta.composite = true;
  return meta;
}

/// What a device does beyond allocating the results: a small function that does what the framework's host
/// code does, in its order. Without one, results are allocated in order.
struct Kernel {
  DeviceType device;
  void (*run)(Call&);
};

/// A derivative formula: a function that gives all gradients of its row, or a lambda that gives the only one.
struct Formula {
  using Function = Gradients (*)(Backward&);
  template <std::convertible_to<Function> F>
  Formula(F formula) : run(formula) {}
  template <class F>
  requires std::is_empty_v<F> && std::invocable<F, Backward&> &&(!std::convertible_to<F, Function>)Formula(F)
      : run([](Backward& backward) -> Gradients { return {Tensor(F{}(backward))}; }) {}
  Function run;
};

/// One row of the derivative table: gradients `of` these arguments by a formula that `reads` the data of
/// these arguments and results. Geometry and plain values are free to read.
struct Derivative {
  std::vector<Name> of;
  std::vector<Name> reads;
  Formula formula;
};

struct NotDifferentiable {};
inline constexpr NotDifferentiable not_differentiable;
struct ByBody {};
inline constexpr ByBody by_body;  ///< a composite's derivative is that of the operators it calls

struct Derivatives {
  Derivatives(NotDifferentiable) {}
  Derivatives(ByBody) {}
  Derivatives(std::initializer_list<Derivative> rows) : rows(rows) {}
  std::vector<Derivative> rows;
};

struct Free {};
inline constexpr Free free_of_flops;  ///< moves data or makes it, computes nothing

struct FlopsRule {
  FlopsRule(Free) {}
  FlopsRule(ByBody) {}
  template <std::convertible_to<FlopCount (*)(const Call&)> Function>
  FlopsRule(Function count) : count(count) {}
  FlopCount (*count)(const Call&) = nullptr;
};

/// Under autocast (torch/csrc autocast_mode, 2.11).
enum class Autocast : uint8_t { none, lower_precision, fp32, fp32_set_dtype, promote, banned };

struct Facts {
  std::string_view node = {};   ///< name of the autograd node; default: CamelCase of the name + "Backward0"
  bool in_place_too = false;    ///< `name_` exists and writes to self
  bool writes_no_data = false;  ///< what is written is the history: no new version, allowed for leaves
  bool view = false;            ///< the result looks into an argument
  bool random = false;
  Autocast autocast = Autocast::none;
  bool cudagraph_unsafe = false;
  bool reads_data = false;  ///< sizes of results depend on values: they are those of the program's record
  uint32_t no_gradient_for = 0;  ///< bit i: result i is not differentiable whatever its dtype
  bool materialize = false;      ///< undefined incoming gradients become zeros (custom functions)
  /// Under autocast the operator casts its arguments itself, then goes on with `next`.
  void (*cast_by)(Call&) = nullptr;
  bool artefact = false;          ///< an exporter's check that eager execution does not run
  bool cuts_history = false;      ///< the argument itself without its history: no work that could be kept
  bool writes_each_once = false;  ///< its target may not overlap itself, as that of `name_` (in_place_too)
};

struct Op {
  std::string_view schema;   ///< as the framework spells it
  std::string_view summary;  ///< one line, in maths
  Meta meta;
  std::vector<Kernel> kernels;
  Derivatives derivatives;
  FlopsRule flops;
  std::vector<std::string_view> examples;  ///< run by every contract test: "f32[2,3] f32[3] 1"
  Facts facts = {};
};

/// A composite: `body` calls other operators, and derivatives and FLOPs are theirs.
inline Op composite_of(std::string_view schema, std::string_view summary, void (*body)(Call&),
                       std::vector<std::string_view> examples, const Facts& facts = {}) {
  return {.schema = schema,
          .summary = summary,
          .meta = composite(body),
          .kernels = {},
          .derivatives = by_body,
          .flops = by_body,
          .examples = std::move(examples),
          .facts = facts};
}

}  // namespace metaprof
