#include "estimate/search/rent.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/shown_text.h"
#include "estimate/estimate.h"
#include "estimate/least_memory.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/prepare.h"
#include "estimate/search/fit.h"
#include "step/repeated_modules.h"

namespace metaprof {
namespace {

constexpr int kUsualSequence = 2048;
// A device of which no memory runs out; --memory takes up to 2^50 bytes.
constexpr const char* kUnlimited = "1023TiB";
constexpr int kFirstWithBf16 = 80;  // compute capability: Ampere

// "bfloat16" of a configuration is --precision bf16.
std::string precision_of(const std::string& dtype) {
  if (dtype == "bfloat16") return "bf16";
  if (dtype == "float16") return "fp16";
  return "fp32";
}

RunOptions run_of(const TypedOptions& typed) {
  RunOptions run;
  for (const auto& [name, text] : typed) set_from_text(run, run_option(name), text);
  return run;
}

// Those of the family, which a report names; peft asks for some where the family has none.
std::string with_targets(const std::string& lora, const std::vector<std::string>& usual) {
  if (lora.find("targets") != std::string::npos) return lora;
  return fmt::format("{},targets={}", lora,
                     usual.empty() ? "all-linear" : fmt::format("{}", fmt::join(usual, ",")));
}

bool can_run(const Model& model, const TypedOptions& typed) {
  try {
    (void)with_inputs(model, run_of(typed));
    return true;
  } catch (const Error&) {
    return false;
  }
}

class Renting {
 public:
  Renting(const Model& model, const RentOptions& options) : model_(model), options_(options) {
    if (!model.build)
      fail(
          "rent: {}: {} of one size of inputs; give a Hugging Face config.json, its folder or the name of a "
          "model, or look with metaprof fit",
          model.name, model.program.captured ? "has captured steps," : "is an export,");
    report_.model = model.name;
    report_.dtype = options.precision.empty() ? precision_of(model.program.usual.dtype) : options.precision;
    if (options.precision.empty() && model.program.usual.dtype.empty())
      report_.notes.emplace_back(
          "the configuration names no dtype, so fp32 is taken; give --precision bf16 otherwise");
    report_.optimizer = options.optimizer;
    report_.context = options.context;
    report_.adapters = with_targets(options.lora, model.program.usual.lora_targets);
  }

  RentReport run(const OnProgress& progress) {
    make_methods();
    in_parallel(report_.methods.size(), [&](size_t i) { look_at_one_sample(report_.methods[i]); });
    for (size_t i = 0; i < report_.methods.size(); ++i) {
      if (progress) progress(i, report_.methods.size());
      find_largest(i);
    }
    for (RentRow& row : report_.rows) {
      row.paged = paged_requests(row);
      row.cards = least_cards(row);
    }
    return std::move(report_);
  }

 private:
  // --- the methods

  void make_methods() {
    TypedOptions training = {{"precision", report_.dtype}, {"optimizer", options_.optimizer}};
    add_common(training);
    if (options_.sequence) {
      training.emplace_back("sequence", std::to_string(*options_.sequence));
    } else {
      training.emplace_back("sequence", std::to_string(kUsualSequence));
      if (!can_run(model_, training)) training.pop_back();
    }
    training.emplace_back("loss", options_.loss);
    if (!can_run(model_, training)) training.back().second = "plain";
    report_.loss = training.back().second;
    const Program one = with_inputs(model_, run_of(training));  // errors of --sequence are shown
    report_.trained_on = inputs_of(one);
    const std::string blocks = repeated_modules(one);
    const TypedOptions lora = {{"lora", report_.adapters}};
    const TypedOptions qlora = {{"lora", report_.adapters}, {"base_weights", options_.base_weights}};
    for (const auto& [name, more] :
         {std::pair<const char*, TypedOptions>("full", {}), {"lora", lora}, {"qlora", qlora}}) {
      TypedOptions step = training;
      step.insert(step.end(), more.begin(), more.end());
      report_.methods.push_back({.name = name, .steps = {step}});
      if (blocks.empty()) continue;
      step.emplace_back("checkpoint", blocks);
      report_.methods.push_back({.name = name, .recomputed = true, .steps = {step}});
    }
    if (model_.program.usual.generates)
      add_generation();
    else
      report_.notes.emplace_back("generation is not built for this model");
  }

  void add_common(TypedOptions& typed) const {
    if (!options_.framework.empty()) typed.emplace_back("framework", options_.framework);
    if (options_.margin != "0%") typed.emplace_back("margin", options_.margin);
  }

  // The prompt takes the whole context but for one token, which the last call adds.
  void add_generation() {
    TypedOptions prompt = {{"precision", report_.dtype}, {"mode", "inference"}, {"steps", "1"}};
    add_common(prompt);
    TypedOptions last = prompt;
    prompt.emplace_back("kv_cache", "0");
    prompt.emplace_back("sequence", std::to_string(std::max<int64_t>(1, options_.context - 1)));
    last.emplace_back("kv_cache", std::to_string(std::max<int64_t>(1, options_.context - 1)));
    report_.methods.push_back({.name = "generate", .steps = {prompt, last}});
  }

  // --- what one sample takes

  void look_at_one_sample(RentMethod& method) {
    for (const TypedOptions& step : method.steps) try {
        RunOptions run = run_of(step);
        run.memory = kUnlimited;
        run.context = "none";
        run.batch = 1;
        const Estimate estimate = metaprof::estimate(model_, run, StepsToRun::until_alike);
        const MemoryProfile& memory = estimate.report.memory;
        const Bytes reserved{memory.phases.peak.reserved_bytes.peak};
        note_facts(estimate.report, method);
        const std::optional<Bytes> least = least_memory(estimate);
        if (least) method.runs_from = std::max(method.runs_from.value_or(Bytes()), *least);
        method.unsharded = unsharded_in(memory.phases);
        if (reserved < method.reserved) continue;
        method.reserved = reserved;
        method.allocated = {memory.phases.peak.allocated_bytes.peak};
        for (size_t i = 0; i < method.at_peak.size(); ++i) method.at_peak[i] = memory.peak.by_category[i];
      } catch (const Error& error) {
        method.error = error.what();
      }
  }

  // Of the last step. When its backward ends, there are weights, states and all gradients. Before, there are fewer gradients.
  static Bytes unsharded_in(const Phases& phases) {
    Bytes most;
    for (const PhaseRow& row : phases.rows)
      if (row.part.phase == Phase::backward)
        most = {row.numbers.allocated_bytes.peak - row.numbers.allocated_bytes.current};
    return std::max(most, Bytes{0});
  }

  // What all methods have in common, from one of them.
  void note_facts(const ProfileReport& report, const RentMethod& method) {
    if (method.name == "full" && !method.recomputed) {
      report_.framework = report.framework;
      report_.parameters = report.memory.parameters.all.count;
    }
    if (method.name != "generate") return;
    report_.cache = {};
    for (const CacheRow& row : report.kv_cache) report_.cache += row.bytes;
  }

  // --- the largest batch on each card

  void find_largest(size_t index) {
    const RentMethod& method = report_.methods[index];
    if (!method.error.empty()) {
      const std::string note = fmt::format("{} is left out: {}", method.name, method.error);
      if (std::ranges::find(report_.notes, note) == report_.notes.end()) report_.notes.push_back(note);
      for (RentRow& row : report_.rows) row.cells.emplace_back();
      return;
    }
    for (const TypedOptions& step : method.steps) {
      FitOptions fit_options;
      for (const auto& [name, text] : step) fit_options.grid.add(run_option(name), text);
      fit_options.grid.add(run_option("device"), options_.devices);
      const FitReport found = fit(model_, fit_options);
      for (size_t i = 0; i < found.rows.size(); ++i) {
        if (report_.rows.size() <= i) report_.rows.push_back(row_of(found.rows[i]));
        add_cell(report_.rows[i], index, found.rows[i]);
      }
    }
  }

  RentRow row_of(const FitRow& found) const {
    RunOptions run;
    run.device = to_text(found.options[0].second);  // shown_options: the device is first
    const Hardware hardware = device_of(run).hardware;
    return {.device = hardware.name,
            .title = hardware.title,
            .memory = hardware.memory,
            .available = found.memory,
            .bf16 = hardware.is_cpu() || hardware.sm >= kFirstWithBf16,
            .cells = {},
            .paged = {},
            .cards = {}};
  }

  // All steps of a method must fit: the smallest batch of theirs.
  static void add_cell(RentRow& row, size_t index, const FitRow& found) {
    const RentCell cell{found.largest, found.unbounded, found.reserved};
    if (row.cells.size() <= index) {
      row.cells.push_back(cell);
      return;
    }
    RentCell& known = row.cells[index];
    if (cell.largest.value_or(0) <= known.largest.value_or(0)) known = cell;
  }

  // --- what follows from them

  const RentMethod* method(std::string_view name, bool recomputed) const {
    const auto found = std::ranges::find_if(report_.methods, [&](const RentMethod& method) {
      return method.name == name && method.recomputed == recomputed && method.error.empty();
    });
    return found == report_.methods.end() ? nullptr : &*found;
  }

  // A server keeps the weights and runs one prompt at a time; the rest is pages of keys and values.
  std::optional<int64_t> paged_requests(const RentRow& row) const {
    const RentMethod* generation = method("generate", false);
    if (!generation || report_.cache.count == 0) return std::nullopt;
    const Bytes rest = row.available - (generation->allocated - report_.cache);
    return std::max<int64_t>(0, rest.count / report_.cache.count);
  }

  // Weights, gradients and states are spread over the cards. What forward and backward of one sample take besides is on each.
  std::optional<int64_t> least_cards(const RentRow& row) const {
    const RentMethod* full = method("full", true);
    if (!full) full = method("full", false);
    if (!full) return std::nullopt;
    Bytes sharded;
    for (const Category category : {Category::parameter, Category::gradient, Category::optimizer_state})
      sharded += full->at_peak[static_cast<size_t>(category)];
    const Bytes left = row.available - full->unsharded;
    if (left.count <= 0) return std::nullopt;
    // In the optimizer's step all is sharded.
    const auto cards = [](Bytes all, Bytes each) { return (all.count + each.count - 1) / each.count; };
    return std::max(cards(sharded, left), cards(full->allocated, row.available));
  }

  const Model& model_;
  const RentOptions& options_;
  RentReport report_;
};

}  // namespace

int64_t parse_tokens(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  int64_t times = 0;
  if (unit.empty()) times = 1;
  if (unit == "k" || unit == "K") times = 1024;
  if (unit == "m" || unit == "M") times = int64_t{1024} * 1024;
  constexpr int64_t kMost = int64_t{1} << 24;
  if (error != std::errc() || times == 0 || number < 2 || number > kMost / times)
    fail("--context: '{}' is no number of tokens from 2 to {}, as 8192 or 32k", shown(text, 40), kMost);
  return number * times;
}

RentReport rent(const Model& model, const RentOptions& options, const OnProgress& progress) {
  return Renting(model, options).run(progress);
}

}  // namespace metaprof
