#include "step/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace metaprof {
namespace {

using Group = RunOption::Group;
using Kind = OptionRule::Kind;

// In the order of the enumerators.
constexpr std::array<std::string_view, 5> kPrecisions = {"fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"};
constexpr std::array<std::string_view, 4> kModes = {"train", "eval", "no-grad", "inference"};
constexpr std::array<std::string_view, 2> kExecutions = {"eager", "graph"};
// Of bitsandbytes; "-double": the scales in 8 bits, too.
constexpr std::array<std::string_view, 5> kBaseWeights = {"nf4", "nf4-double", "fp4", "fp4-double", "int8"};
constexpr std::array<std::string_view, 5> kSavedHooks = {"none", "offload", "offload-pinned", "pack=bf16",
                                                         "pack=fp16"};

template <class Words>
std::vector<std::string> list(const Words& words) {
  return {words.begin(), words.end()};
}

template <class Word, class Words>
Word word_named(std::string_view option, std::string_view word, const Words& words) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) fail("--{}: '{}' is not one of: {}", option, word, fmt::join(words, ", "));
  return static_cast<Word>(found - words.begin());
}

std::string joined(const std::vector<std::string>& texts) { return fmt::format("{}", fmt::join(texts, " ")); }

// Without blanks, so that several can stand in one text.
std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Calls `add` with each word of a text.
template <class Add>
void for_each_word(std::string_view text, const Add& add) {
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return;
    const size_t end = std::min(text.find(' ', begin), text.size());
    add(std::string(text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
}

// A field's value as an option has it, and back.

OptionValue value_of(bool field) { return field; }
OptionValue value_of(int field) { return int64_t{field}; }
OptionValue value_of(const std::string& field) { return field.empty() ? OptionValue() : OptionValue(field); }
OptionValue value_of(Precision field) { return std::string(to_string(field)); }
OptionValue value_of(Mode field) { return std::string(to_string(field)); }
OptionValue value_of(Execution field) { return std::string(to_string(field)); }
OptionValue value_of(SavedHooks field) { return std::string(to_string(field)); }
OptionValue value_of(OptimizerImpl field) { return std::string(to_string(field)); }
OptionValue value_of(const std::vector<std::string>& field) { return value_of(joined(field)); }
OptionValue value_of(const std::map<std::string, std::string>& field) {
  std::vector<std::string> settings;
  settings.reserve(field.size());
  for (const auto& [name, value] : field) settings.push_back(fmt::format("{}={}", name, value));
  return value_of(settings);
}
template <class T>
OptionValue value_of(const std::optional<T>& field) {
  return field ? value_of(*field) : OptionValue();
}
OptionValue value_of(const std::optional<double>& field) {
  return field ? OptionValue(*field) : OptionValue();
}

void store(bool value, bool& field) { field = value; }
void store(int64_t value, int& field) { field = static_cast<int>(value); }
void store(int64_t value, std::optional<int>& field) { field = static_cast<int>(value); }
void store(double value, std::optional<double>& field) { field = value; }
void store(const std::string& value, std::string& field) { field = value; }
void store(const std::string& value, Precision& field) { field = precision_named(value); }
void store(const std::string& value, Mode& field) { field = mode_named(value); }
void store(const std::string& value, Execution& field) { field = execution_named(value); }
void store(const std::string& value, SavedHooks& field) { field = saved_hooks_named(value); }
void store(const std::string& value, OptimizerImpl& field) { field = optimizer_impl_named(value); }
void store(const std::string& value, std::vector<std::string>& field) {
  for_each_word(value, [&](std::string word) { field.push_back(std::move(word)); });
}
void store(const std::string& value, std::map<std::string, std::string>& field) {
  for_each_word(value, [&](const std::string& word) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) fail("--env: '{}' is no NAME=VALUE", word);
    field[word.substr(0, equals)] = word.substr(equals + 1);
  });
}

template <class T>
auto& field_of(auto& options, T StepOptions::*field) {
  return options.step.*field;
}
template <class T>
auto& field_of(auto& options, T RunOptions::*field) {
  return options.*field;
}

// What a row is besides the functions that follow from the type of its field.
struct Row {
  std::string_view name, argument;
  Group group;
  std::string help;
  OptionRule rule;
};

template <class Options, class T>
RunOption row(Row facts, T Options::*field) {
  RunOption option{.name = facts.name,
                   .argument = facts.argument,
                   .group = facts.group,
                   .help = std::move(facts.help),
                   .rule = std::move(facts.rule),
                   .value = {},
                   .set = {}};
  option.value = [field](const RunOptions& options) { return value_of(field_of(options, field)); };
  option.set = [field, name = facts.name](RunOptions& options, const OptionValue& value) {
    const RunOptions defaults;
    options.step.given.insert(name);
    if (std::holds_alternative<std::monostate>(value)) field_of(options, field) = field_of(defaults, field);
    std::visit(
        [&](const auto& v) {
          if constexpr (requires { store(v, field_of(options, field)); }) store(v, field_of(options, field));
        },
        value);
  };
  return option;
}

OptionRule word(std::vector<std::string> words) { return {.kind = Kind::word, .words = std::move(words)}; }
OptionRule whole(int64_t most) { return {.kind = Kind::whole, .least = 1, .most = most}; }
OptionRule whole_from(int64_t least, int64_t most) {
  return {.kind = Kind::whole, .least = least, .most = most};
}
OptionRule real() { return {.kind = Kind::real}; }
OptionRule yes_or_no() { return {.kind = Kind::flag}; }
OptionRule text() { return {.kind = Kind::text}; }

RunOption repeated(RunOption option) {
  option.repeated = true;
  option.in_grid = false;
  return option;
}
RunOption added_later(RunOption option) {
  option.added_later = true;
  return option;
}
// One whose value may have commas.
RunOption never_a_list(RunOption option) {
  option.in_grid = false;
  return option;
}

// What backward does besides the usual.
void add_gradient_rows(std::vector<RunOption>& rows) {
  using Step = StepOptions;
  rows.push_back(added_later(row({"hooks", "WORD", Group::step,
                                  fmt::format("keep saved tensors in host memory, or packed in 16 bits: {}",
                                              fmt::join(kSavedHooks, ", ")),
                                  word(list(kSavedHooks))},
                                 &Step::hooks)));
  rows.push_back(added_later(never_a_list(row(
      {"grad", "NAMES", Group::step, "compute gradients of these inputs (x,y), and of no parameter", text()},
      &Step::grad))));
  rows.push_back(added_later(
      row({"create_graph", "", Group::step,
           "with --grad: add their squares to the loss before backward (a gradient penalty)", yes_or_no()},
          &Step::create_graph)));
  rows.push_back(added_later(
      row({"hvp", "", Group::step, "with --grad: differentiate again (a product of the Hessian and a vector)",
           yes_or_no()},
          &Step::hvp)));
}

void add_step_rows(std::vector<RunOption>& rows) {
  using Step = StepOptions;
  const auto add = [&](const Row& facts, auto field) -> RunOption& {
    return rows.emplace_back(row(facts, field));
  };
  add({"precision", "WORD", Group::step, fmt::format("{}", fmt::join(kPrecisions, ", ")),
       word(list(kPrecisions))},
      &Step::precision);
  OptionRule optimizers = word(optimizer_names());
  optimizers.takes = is_optimizer;
  optimizers.besides = optimizer_endings();
  add({"optimizer", "WORD", Group::step, "none, sgd, adamw …; an unknown word lists them", optimizers},
      &Step::optimizer);
  add({"optimizer_impl", "WORD", Group::step, fmt::format("{}", fmt::join(known_implementations(), ", ")),
       word(known_implementations())},
      &Step::optimizer_impl);
  add({"steps", "N", Group::step, "training steps in a row", whole(1000)}, &Step::steps);
  add({"accumulate", "N", Group::step, "micro-batches per step", whole(1000)}, &Step::accumulate);
  add({"clip_norm", "X", Group::step, "clip the norm of all gradients to X", real()}, &Step::clip_norm);
  add({"clip_value", "X", Group::step, "clip each gradient to X", real()}, &Step::clip_value);
  add({"zero_grad_to_none", "BOOL", Group::step, "true: free gradients; false: fill them with 0",
       yes_or_no()},
      &Step::zero_grad_to_none);
  add({"channels_last", "", Group::step, "parameters and inputs in channels_last", yes_or_no()},
      &Step::channels_last);
  add({"checkpoint", "GLOB", Group::step,
       "recompute these modules in backward: paths with shell wildcards within a segment, blanks between "
       "several; none",
       text()},
      &Step::checkpoint);
  add({"checkpoint_reentrant", "", Group::step, "checkpoint by the reentrant method", yes_or_no()},
      &Step::checkpoint_reentrant);
  add({"mode", "WORD", Group::step, fmt::format("{}", fmt::join(kModes, ", ")), word(list(kModes))},
      &Step::mode);
  rows.push_back(added_later(row(
      {"anomaly", "", Group::step, "check every gradient for NaN, as set_detect_anomaly does", yes_or_no()},
      &Step::anomaly)));
  add_gradient_rows(rows);
  rows.push_back(added_later(
      row({"condition", "WORD", Group::step,
           "of torch.cond, whose condition follows from data: true, false; without it profile "
           "runs both, and reports the one with the higher peak; also of tensors that decide in an "
           "archive of torch.jit.save",
           word({"true", "false"})},
          &Step::condition)));
  rows.push_back(added_later(row({"trips", "N", Group::step,
                                  "how often while_loop runs its body, where that follows from data; without "
                                  "it profile runs one trip and two",
                                  whole_from(0, 1000)},
                                 &Step::trips)));
  rows.push_back(added_later(
      row({"execution", "WORD", Group::step,
           "eager, or compiled as a graph (docs/explanation/graph_executor.md)", word(list(kExecutions))},
          &Step::execution)));
  rows.push_back(added_later(
      row({"strict", "", Group::step, "make unsupported operators and assumptions an error", yes_or_no()},
          &Step::strict)));
}

void add_model_rows(std::vector<RunOption>& rows) {
  using Run = RunOptions;
  rows.push_back(
      added_later(never_a_list(row({"lora", "TEXT", Group::model,
                                    "train only adapters beside linear modules: r=16,targets=q_proj,v_proj "
                                    "(all-linear; peft's of the family); also "
                                    "alpha=, dropout=, dtype=fp32|model",
                                    text()},
                                   &Run::lora))));
  rows.push_back(added_later(
      row({"base_weights", "WORD", Group::model,
           fmt::format("freeze the weights of linear modules and store them as bitsandbytes does: {}",
                       fmt::join(kBaseWeights, ", ")),
           word(list(kBaseWeights))},
          &Run::base_weights)));
  rows.push_back(added_later(row(
      {"loss", "WORD", Group::model,
       "of a configuration's language model: plain (cross-entropy of its logits), or transformers (what the "
       "class computes of labels: of a 32-bit copy of the logits)",
       word({"plain", "transformers"})},
      &Run::loss)));
  rows.push_back(added_later(row({"kv_cache", "N", Group::model,
                                  "with --mode inference: tokens in a decoder's cache before the call; 0: "
                                  "the prompt's own call, which fills it",
                                  whole_from(0, int64_t{1} << 30)},
                                 &Run::kv_cache)));
}

void add_input_rows(std::vector<RunOption>& rows) {
  using Run = RunOptions;
  constexpr int64_t kMostSize = int64_t{1} << 30;
  rows.push_back(row({"batch", "N", Group::inputs, "batch size instead of the export's", whole(kMostSize)},
                     &Run::batch));
  rows.push_back(
      row({"sequence", "N", Group::inputs, "sequence length instead of the export's", whole(kMostSize)},
          &Run::sequence));
  rows.push_back(repeated(row(
      {"set", "NAME=TEXT", Group::inputs, "shape (4x512) or value of an input", text()}, &Run::settings)));
  rows.push_back(added_later(never_a_list(
      repeated(row({"input", "NAME=TYPE[SHAPE]", Group::inputs,
                    "an argument of a model of torch.jit.save, as x=f32[8,3,224,224], or n=4", text()},
                   &Run::inputs)))));
}

void add_device_rows(std::vector<RunOption>& rows) {
  using Run = RunOptions;
  rows.push_back(row({"device", "NAME", Group::device,
                      "a card (metaprof devices lists them), cpu, or FILE.json; fit and sweep: all", text()},
                     &Run::device));
  rows.push_back(
      row({"memory", "SIZE", Group::device, "memory of the device, as 24GiB", text()}, &Run::memory));
  rows.push_back(added_later(row({"context", "SIZE", Group::device,
                                  "memory outside the allocator: the CUDA context, loaded kernels, handles; "
                                  "none [from reports of such cards]",
                                  text()},
                                 &Run::context)));
  rows.push_back(added_later(never_a_list(
      row({"margin", "SHARE", Group::device, "share of the memory to leave free, as 5% or 0.05", text()},
          &Run::margin))));
  rows.push_back(added_later(
      row({"framework", "VERSION", Group::device,
           "version of PyTorch, 2.6 to 2.15; `metaprof frameworks` lists them [the one that wrote the model]",
           text()},
          &Run::framework)));
  rows.push_back(never_a_list(
      row({"alloc_conf", "TEXT", Group::device, "allocator settings, as in PYTORCH_ALLOC_CONF", text()},
          &Run::alloc_conf)));
  rows.push_back(
      added_later(repeated(row({"env", "NAME=VALUE", Group::device,
                                "an environment variable of the process: CUBLAS_WORKSPACE_CONFIG …", text()},
                               &StepOptions::environment))));
  rows.push_back(row(
      {"workspaces", "WORD", Group::device,
       "workspaces of cuDNN's plans: auto (asks cuDNN, or a rule), none, or a FILE of measured ones", text()},
      &Run::workspaces));
}

}  // namespace

std::string_view to_string(Precision precision) { return kPrecisions[static_cast<size_t>(precision)]; }
std::string_view to_string(Mode mode) { return kModes[static_cast<size_t>(mode)]; }
std::string_view to_string(SavedHooks hooks) { return kSavedHooks[static_cast<size_t>(hooks)]; }
std::string_view to_string(Execution execution) { return kExecutions[static_cast<size_t>(execution)]; }

Precision precision_named(std::string_view word) {
  return word_named<Precision>("precision", word, kPrecisions);
}
Mode mode_named(std::string_view word) { return word_named<Mode>("mode", word, kModes); }
SavedHooks saved_hooks_named(std::string_view word) {
  return word_named<SavedHooks>("hooks", word, kSavedHooks);
}
Execution execution_named(std::string_view word) {
  return word_named<Execution>("execution", word, kExecutions);
}

std::optional<DType> autocast_dtype(Precision precision) {
  if (precision == Precision::amp_bf16) return DType::bf16;
  return precision == Precision::amp_fp16 ? std::optional(DType::f16) : std::nullopt;
}

DType state_dtype(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  return precision == Precision::fp16 ? DType::f16 : DType::f32;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names = known_optimizers();
  if (std::ranges::find(names, "none") == names.end()) names.insert(names.begin(), "none");
  return names;
}

std::string RunOption::flag() const {
  std::string text = "--" + std::string(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

const std::vector<RunOption>& run_options() {
  static const std::vector<RunOption> kTable = [] {
    std::vector<RunOption> rows;
    add_step_rows(rows);
    add_model_rows(rows);
    add_input_rows(rows);
    add_device_rows(rows);
    return rows;
  }();
  return kTable;
}

const RunOption& run_option(std::string_view name) {
  const auto found = std::ranges::find(run_options(), name, &RunOption::name);
  if (found == run_options().end()) fail("there is no option '{}'", name);
  return *found;
}

void set_from_text(RunOptions& options, const RunOption& option, std::string_view text) {
  const bool may_be_none =
      option.name == "checkpoint" || option.name == "lora" || option.name == "base_weights";
  if (may_be_none && text == "none") return option.set(options, {});
  const std::string one = option.repeated ? without_blanks(std::string(text)) : std::string(text);
  const auto value = option.rule.read(one);
  if (value) return option.set(options, *value);
  const std::string expected = option.rule.expected();
  if (option.rule.kind == Kind::word)
    fail("{}: '{}' is not {}{}", option.flag(), text, expected, did_you_mean(text, option.rule.words));
  fail("{}: '{}' is not {}", option.flag(), text,
       option.rule.kind == Kind::whole ? "a whole number from " + expected : expected);
}

}  // namespace metaprof
