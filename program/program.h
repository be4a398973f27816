#pragma once
// A Program: what a frontend makes of a user's model, and what the interpreter runs. A graph of calls on
// numbered values, with module paths and source lines, and what is known of every value.
//
// Whoever makes a program says how long its values live (GraphNode::drops). For an export this follows from
// the Python text in it (meta/source).
//
// Names are those of the file. A frontend checks that every value is defined once and before its use, that
// tensors' sizes fit in 64 bits, and that nothing recurses deeply; the interpreter relies on it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/allocator/device_allocator.h"
#include "meta/tensor/value.h"
#include "program/expression.h"

namespace metaprof {

/// Index of a value within its graph.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

/// The device on which the model runs, whichever the session describes. In arguments it stands for the device
/// that the model was exported on ("meta", or the one its parameters were on).
inline constexpr Device kModelDevice{DeviceType::cuda, -1};

/// What the file says of a tensor. Sizes are evaluated; `size_expressions` says where they were symbolic.
struct TensorFacts {
  DType dtype = DType::f32;
  Sizes sizes, strides;
  int64_t offset = 0;
  bool requires_grad = false;             ///< to be trusted for parameters only
  std::optional<Device> device;           ///< nothing: the model's device; cpu: made on the host
  std::vector<int32_t> size_expressions;  ///< per size: index into Program::expressions, or -1; may be empty
  std::vector<int32_t> stride_expressions;  ///< the same for strides
  int32_t offset_expression = -1;
};

struct ValueFacts {
  std::string name;
  std::optional<TensorFacts> tensor;  ///< nothing: a symbolic number, a list, or not in the file
  std::optional<int64_t> number;      ///< value of a symbolic integer or boolean
  std::optional<double> real;         ///< value of a symbolic floating number
  int32_t number_expression = -1;     ///< of `number`: index into Program::expressions
};

struct Graph;

/// An argument of a call.
struct Operand {
  enum class Kind : uint8_t {
    constant,  ///< `constant` (None included)
    value,     ///< one value of the graph
    values,    ///< a list; kNoValue stands for None
    integers,  ///< a list of integers, some of them values of the graph: `values[i]`, or kNoValue and
               ///< `numbers[i]`
    graph,     ///< a sub-graph (higher-order operators)
    unknown,   ///< a kind that the reader does not know: `text` names it
  };
  Kind kind = Kind::constant;
  std::string name;  ///< the schema's argument name; empty: positional
  Value constant;
  ValueId value = kNoValue;
  std::vector<ValueId> values;
  std::vector<int64_t> numbers;
  std::shared_ptr<const Graph> graph;
  std::string text;
};

/// A result of a call: one value, a list of values, or none (kNoValue).
struct Target {
  bool list = false;
  std::vector<ValueId> values;
};

/// A line of the source that was at work when a call was made: a level of a stack trace.
struct SourceLine {
  std::string file, function, code;  ///< `code`: the first line of the statement
  int line = 0;
  friend auto operator<=>(const SourceLine&, const SourceLine&) = default;
};

/// A call of a module, whose forward encloses calls of operators.
struct ModuleCall {
  std::string path, type;  ///< "model.layer1.0", "torchvision.models.resnet.BasicBlock"
  std::string key;         ///< tells calls of a shared module apart ("…@1")
  friend auto operator<=>(const ModuleCall&, const ModuleCall&) = default;
};

/// A value that an attribute of the model holds when a run is over (`self.hidden = x`): it goes when the next run has
/// returned from the call that makes `until`.
struct KeptValue {
  ValueId value = kNoValue, until = kNoValue;
  friend bool operator==(const KeptValue&, const KeptValue&) = default;
};

/// One call, and what the program's source decides about it.
struct GraphNode {
  std::string op;  ///< "aten::add.Tensor", "higher_order::cond", "_operator::mul", "mylib::custom"
  std::vector<Operand> operands;
  std::vector<Target> targets;
  int32_t modules = -1;  ///< index into Program::module_stacks; -1: none
  int32_t source = -1;   ///< index into Program::source_stacks; -1: none

  /// Values that nobody but autograd holds once the call has returned, in the order in which they go. A value
  /// that no node drops outlives the graph.
  std::vector<ValueId> drops;
  std::vector<KeptValue> keeps;  ///< results of this call that outlive the run; of the program's own graph
  /// The source names the dtype that the call is given. Another dtype follows the model's precision.
  bool dtype_named = false;
  /// The tensor whose dtype the call was given; kNoValue: it is not known.
  ValueId dtype_of = kNoValue;
  bool without_autocast = false;  ///< the source turns autocast off for this call
  /// Of a view: a tensor that cannot be viewed so is copied first, as the source may do.
  bool copies_to_view = false;

  /// The operand that is passed by this name; null if there is none.
  const Operand* operand_named(std::string_view name) const;
};

/// Calls of one operator whose results a region keeps although it is recomputed.
struct KeptCalls {
  std::string op;          ///< "aten::mm", "aten::add.Tensor"; a name without a namespace is aten's
  std::vector<int> which;  ///< the n-th calls in the region, from 0, in order; empty: all
  friend bool operator==(const KeptCalls&, const KeptCalls&) = default;
};

/// Consecutive nodes that are checkpointed together: computed again in backward.
struct CheckpointRegion {
  size_t begin = 0, end = 0;  ///< indices of nodes
  bool reentrant = false;
  bool whole =
      false;  ///< without reentrancy: to its end, also what backward does not need (early_stop=False)
  std::vector<KeptCalls> kept = {};  ///< a selective checkpoint, without reentrancy
  friend bool operator==(const CheckpointRegion&, const CheckpointRegion&) = default;
};

/// A value that the program may let go earlier or later than the model does: the source lines do not tell it.
struct GuessedLifetime {
  enum class Reason : uint8_t {
    function,    ///< made in a statement that calls a function, which leaves no frame
    statements,  ///< several statements stand in its line
    expression,  ///< an expression binds a name (`:=`)
    element,     ///< it was assigned to an element (`parts[i] = x`)
    list,        ///< a list or the like holds it, and may have let it go
    deleted,     ///< a variable holds it to the end of the function; `del` leaves no mark
  };
  ValueId value = kNoValue;
  Reason reason = Reason::function;
  friend bool operator==(const GuessedLifetime&, const GuessedLifetime&) = default;
};

struct Graph {
  std::vector<ValueFacts> values;
  std::vector<ValueId> inputs;  ///< kNoValue: a constant input that no call uses
  std::vector<Operand> outputs;
  std::vector<GraphNode> nodes;
  std::vector<CheckpointRegion> checkpoints;  ///< in order, none inside another
  std::vector<GuessedLifetime> guesses;       ///< in the order of values; of exports alone
};

/// Its results are numbers, all of which the program knows.
bool makes_only_numbers(const Graph& graph, const GraphNode& node);

struct ProgramInput {
  enum class Kind : uint8_t { parameter, buffer, constant_tensor, user, constant };
  Kind kind = Kind::user;
  ValueId value = kNoValue;
  std::string name;        ///< "model.fc.weight", or the argument's name of a user input
  bool persistent = true;  ///< buffers
  bool own_dtype =
      false;         ///< its dtype is the same in every precision: adapters of 32 bits beside a model of 16
  int tied_to = -1;  ///< index into Program::inputs of the first registered name of the same parameter
  Value constant;    ///< of a constant input
};

struct ProgramOutput {
  enum class Kind : uint8_t {
    user,
    loss,
    buffer_mutation,
    parameter_mutation,
    input_mutation,
    gradient  ///< of a parameter or of a user input
  };
  Kind kind = Kind::user;
  Operand operand;
  std::string name;  ///< what a mutation or gradient is of
};

/// A symbolic integer: how it follows from symbols, and its value when the program was exported (nothing for
/// sizes that depend on data).
struct SymbolicInteger {
  std::shared_ptr<const Expression> expression;
  std::optional<int64_t> hint;
};

/// Values for which the program was exported; nothing: unbounded.
struct SymbolRange {
  std::optional<int64_t> least, most;
};

/// Sizes of inputs that are not those of the export, where it has no symbols for them (resizing.h).
struct Resizing {
  struct Change {
    int64_t before, now;
    friend bool operator==(const Change&, const Change&) = default;
  };
  std::vector<Change> changes;      ///< of sizes of inputs
  std::map<ValueId, Sizes> inputs;  ///< what the inputs had when the program was exported
  bool empty() const { return changes.empty(); }
};

/// How a program was captured from a run. Its calls are then all that the run did: phases, backward passes and
/// optimizer steps are among them (step_call.h), and it has no inputs.
struct Capture {
  /// What the run itself took in a part of its steps.
  struct Measured {
    std::string phase;  ///< setup, forward, backward, optimizer, zero_grad, after
    int64_t step = 0, micro = -1;
    AllocatorNumbers numbers;
    /// Of device memory, in order: the bytes of a request, or -n for the return of what the n-th of the requests
    /// before asked for (1: the last one). Those of the whole run count.
    std::vector<int64_t> requests;
  };

  std::string torch;       ///< the framework's version, "2.11.0+cu130"
  std::string device;      ///< on which it ran, "h200"; empty: it is not known
  int64_t memory = 0;      ///< of the device, in bytes; 0: all that it has
  std::string alloc_conf;  ///< PYTORCH_ALLOC_CONF
  std::map<std::string, std::string>
      environment;                  ///< of the process: variables that decide memory (with_environment)
  std::string workspaces = "auto";  ///< of cuDNN's plans: planned, or "none"
  /// What ended the run before its first step was whole: "ImportError in forward of step 1"; empty: nothing did.
  std::string unfinished;
  std::vector<Measured> measured;
  /// Of a module's steps, which have no device of their own: the options with which they were captured. Empty: a program's.
  std::map<std::string, std::string> module;
  bool own_optimizer = true;  ///< false: of a module's steps, which have the one that is asked for
};

/// What is usual for a model, by its configuration.
struct Usual {
  std::string dtype;  ///< in which the weights are published, "bfloat16"; empty: it does not say
  /// Modules that get adapters where nobody names them, as peft's LoraConfig has them for the family; empty: it has none.
  std::vector<std::string> lora_targets;
  bool generates = false;  ///< it can be called with a cache of keys
};

struct Program {
  std::string name;    ///< "resnet18"
  std::string origin;  ///< the file it was read from, for messages
  Graph graph;
  std::vector<ProgramInput> inputs;  ///< paired with graph.inputs
  std::vector<ProgramOutput> outputs;
  std::vector<std::vector<ModuleCall>> module_stacks;  ///< outermost first; each list once, nodes share them
  std::vector<std::vector<SourceLine>> source_stacks;  ///< innermost last
  std::vector<SymbolicInteger> expressions;
  Resizing resizing;                          ///< resizing.h
  SymbolValues symbols;                       ///< the file's hints until bound again (symbols.h)
  std::map<std::string, SymbolRange> ranges;  ///< of symbols
  /// Symbols of sizes that follow from data, which nothing gives a value, each with what was assumed, as a sentence.
  std::map<std::string, std::string> assumed;
  std::map<std::string, std::string> module_types;  ///< path → type, of all modules of the model
  std::vector<std::string> modules;                 ///< paths of all modules, in the order of registration
  std::vector<std::string> warnings;                ///< one clear line each
  bool training = true;
  std::optional<Capture> captured;
  /// The program where it is traced, or a stream captured, with the same inputs and outputs; null: it is the same there.
  std::shared_ptr<const Program> traced;
  Usual usual;  ///< of a configuration; else empty
  /// Branches and loops of an archive of torch.jit.save that were followed: PyTorch's graph has them, this one the calls inside.
  size_t followed = 0;
  std::string framework;  ///< version of PyTorch that wrote it or ran it, "2.11.0+cu130"; empty: not known

  /// The loss: the output that the file marks as such, else the first floating, zero-dimensional output of
  /// the model. kNoValue if there is none.
  ValueId loss() const;

  /// Groups of names of one parameter, first-registered first.
  std::vector<std::vector<std::string>> tied_names() const;
};

}  // namespace metaprof
