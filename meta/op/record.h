#pragma once
// The record of an operator: everything that the project knows about it, in one place. Families of operators
// (meta/ops) are lists of these.

#include <array>
#include <concepts>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/fixed_list.h"
#include "meta/op/schema.h"
#include "meta/platform/framework.h"
#include "meta/trace/kernel.h"

namespace metaprof {

struct Call;
struct Backward;
struct Operator;
class Session;
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
  constexpr Meta(Function run) : run(run) {}
  void (*run)(Call&);
  bool composite = false;
};
constexpr Meta composite(void (*body)(Call&)) {
  Meta meta(body);
  meta.composite = true;
  return meta;
}

/// What the framework's host code asks of memory on a device beyond the results: a small function that asks for
/// the same in the same order. Without one, results are allocated in order.
struct HostCode {
  DeviceType device = DeviceType::cpu;
  void (*run)(Call&) = nullptr;
};
using HostCodes = FixedList<HostCode, 2>;

/// A derivative formula: a function that gives all gradients of its row, or a lambda that gives the only one.
struct Formula {
  using Function = Gradients (*)(Backward&);
  constexpr Formula() = default;
  template <std::convertible_to<Function> F>
  constexpr Formula(F formula) : run(formula) {}
  template <class F>
  requires std::is_empty_v<F> && std::invocable<F, Backward&> &&
      (!std::convertible_to<F, Function>)constexpr Formula(F)
      : run([](Backward& backward) { return only_gradient(F{}(backward)); }) {}
  Function run = nullptr;

 private:
  static Gradients only_gradient(Tensor gradient);
};

using Names = FixedList<Name, 12>;

/// One row of the derivative table: gradients `of` these arguments by a formula that `reads` the data of
/// these arguments and results. Geometry and plain values are free to read.
struct Derivative {
  Names of;
  Names reads;
  Formula formula;
};

struct NotDifferentiable {};
inline constexpr NotDifferentiable not_differentiable;
struct ByBody {};
inline constexpr ByBody by_body;  ///< a composite's derivative is that of the operators it calls

/// The derivative table of an operator. Names of all rows lie together: most rows have one or two.
class Derivatives {
 public:
  /// A row of the table, as `Derivative`.
  struct Row {
    std::span<const Name> of, reads;
    Formula formula;
  };

  constexpr Derivatives() = default;
  constexpr Derivatives(NotDifferentiable) {}
  constexpr Derivatives(ByBody) {}
  constexpr Derivatives(std::initializer_list<Derivative> rows) {
    for (const Derivative& row : rows) {
      for (const Name& name : row.of) names_.push_back(name);
      for (const Name& name : row.reads) names_.push_back(name);
      rows_.push_back({.formula = row.formula,
                       .of = static_cast<uint8_t>(row.of.size()),
                       .reads = static_cast<uint8_t>(row.reads.size())});
    }
  }

  std::vector<Row> rows() const {
    std::vector<Row> rows;
    const Name* name = names_.begin();
    for (const Lengths& lengths : rows_) {
      rows.push_back({{name, lengths.of}, {name + lengths.of, lengths.reads}, lengths.formula});
      name += lengths.of + lengths.reads;
    }
    return rows;
  }

 private:
  struct Lengths {
    Formula formula;
    uint8_t of = 0, reads = 0;
  };
  FixedList<Lengths, 8> rows_;
  FixedList<Name, 20> names_;
};

struct Free {};
inline constexpr Free free_of_flops;  ///< moves data or makes it, computes nothing

struct FlopsRule {
  constexpr FlopsRule(Free) {}
  constexpr FlopsRule(ByBody) {}
  template <std::convertible_to<FlopCount (*)(const Call&)> Function>
  constexpr FlopsRule(Function count) : count(count) {}
  FlopCount (*count)(const Call&) = nullptr;
};

/// Under autocast (torch/csrc autocast_mode, 2.11).
enum class Autocast : uint8_t { none, lower_precision, fp32, fp32_set_dtype, promote, banned };

struct Facts {
  /// The framework's versions in which the operator is as the record says. Others may have a record of the same name.
  FrameworkRange versions = {};
  /// What a call needs beyond the schema, with commas between: "self.dim >= 2, dim in self, chunks > 0" (meta/op/takes.h).
  std::string_view takes = {};
  std::string_view node = {};   ///< name of the autograd node; default: CamelCase of the name + "Backward0"
  bool in_place_too = false;    ///< `name_` exists and writes to self
  bool writes_no_data = false;  ///< what is written is the history: no new version, allowed for leaves
  bool view = false;            ///< the result looks into an argument
  bool random = false;
  /// Along the last dimension of the result one element is not 0; which of them nothing says.
  bool one_of_last = false;
  /// An integer result holds places along the last dimension of the first argument; which of them nothing says.
  bool places_in_last = false;
  Autocast autocast = Autocast::none;
  bool cudagraph_unsafe = false;  ///< cannot be captured in a CUDA graph, also where the host reads nothing
  bool reads_data = false;        ///< sizes of results depend on values; also of composites
  bool host_reads = false;        ///< its own host code waits for the device and reads what it has computed
  bool product = false;           ///< of matrices, a convolution, or made of them (linear, attention)
  Kernel kernel = Kernel::other;  ///< what computes it, unless its host code says otherwise
  Names no_gradient_for = {};     ///< results that are not differentiable whatever their dtype
  /// An argument that the derivative reads is kept only if another argument needs a gradient (derivatives.yaml,
  /// wrap_opt_if).
  bool keeps_for_others = false;
  /// What moving a module to a device does besides moving each of its weights, told by its call: one value per argument
  /// of the schema, None for what is none of the module's own weights or not constant.
  void (*on_placement)(Session&, const Operator&, std::span<const Value> arguments) = nullptr;
  /// Under autocast the operator casts its arguments itself, then goes on with `next`.
  void (*cast_by)(Call&) = nullptr;
  /// Marks (meta/tensor/tensor.h) with which it takes tensors as they are; of others it gets copies (meta/session/marks.h).
  uint8_t reads_marks = 0;
  bool artefact = false;          ///< an exporter's check that eager execution does not run
  bool cuts_history = false;      ///< the argument itself without its history: no work that could be kept
  bool writes_each_once = false;  ///< its target may not overlap itself, as that of `name_` (in_place_too)

  constexpr bool unsafe_in_cuda_graphs() const { return cudagraph_unsafe || host_reads; }
};

/// Arguments of calls, as text: "f32[2,3] f32[3] 1".
using Examples = FixedList<std::string_view, 6>;

struct Op {
  std::string_view schema;   ///< as the framework spells it
  std::string_view summary;  ///< one line, in maths
  Meta meta;
  HostCodes host_code = {};  ///< none: results are allocated in order
  Derivatives derivatives;
  FlopsRule flops;
  Examples examples;  ///< run by every contract test
  Facts facts = {};
};

/// A composite: `body` calls other operators, and derivatives and FLOPs are theirs.
constexpr Op composite_of(std::string_view schema, std::string_view summary, void (*body)(Call&),
                          const Examples& examples, const Facts& facts = {}) {
  return {.schema = schema,
          .summary = summary,
          .meta = composite(body),
          .derivatives = by_body,
          .flops = by_body,
          .examples = examples,
          .facts = facts};
}

/// The same record with another name for its node, …
constexpr Op node_named(std::string_view node, Op op) {
  op.facts.node = node;
  return op;
}
/// … without `name_`, …
constexpr Op only_functional(Op op) {
  op.facts.in_place_too = false;
  return op;
}
/// … with what a call needs beyond the schema, …
constexpr Op taking(std::string_view takes, Op op) {
  op.facts.takes = takes;
  return op;
}
/// … with a rule of autocast, …
constexpr Op under_autocast(Autocast rule, Op op) {
  op.facts.autocast = rule;
  return op;
}
constexpr Op fp32_under_autocast(Op op) { return under_autocast(Autocast::fp32, op); }
/// … with another meta function, …
constexpr Op with_meta(Meta meta, Op op) {
  op.meta = meta;
  return op;
}
/// … with what the GPU's host code does, …
constexpr Op on_cuda(void (*run)(Call&), Op op) {
  op.host_code = {{DeviceType::cuda, run}};
  return op;
}
/// … counted by this rule, …
constexpr Op with_flops(FlopsRule flops, Op op) {
  op.flops = flops;
  return op;
}
/// … with this example only.
constexpr Op with_example(std::string_view example, Op op) {
  op.examples = {example};
  return op;
}

/// One table of several.
template <size_t... sizes>
constexpr auto joined(const std::array<Op, sizes>&... tables) {
  return std::apply([](const auto&... op) { return std::array{op...}; }, std::tuple_cat(tables...));
}

/// Records that stand together, and all of a file.
using Records = std::span<const Op>;
using Tables = std::span<const Records>;

}  // namespace metaprof
