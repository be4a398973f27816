#include "estimate/prepare/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/file_in_memory.h"
#include "estimate/prepare/framework.h"
#include "estimate/prepare/model_inputs.h"
#include "estimate/prepare/named_module.h"
#include "estimate/prepare/positions.h"
#include "estimate/prepare/run_groups.h"
#include "estimate/prepare/sizes.h"
#include "meta/platform/files/device_file.h"
#include "meta/trace/text.h"
#include "program/config/config_file.h"
#include "program/edits/base_weights.h"
#include "program/edits/lora.h"
#include "program/higher_order.h"
#include "program/pt2/pt2.h"
#include "program/text/program_file.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostTextBytes = uintmax_t{1} << 30;

// Of the folders that METAPROF_MODELS lists, the models whose names are not unlike this one.
std::string models_meant(const std::string& model, const std::string& folders) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(folders.substr(begin, end - begin), code))
      if (entry.path().extension() == ".pt2") names.push_back(entry.path().stem().string());
    begin = end + 1;
  }
  for (const BuiltinName& known : builtin_models()) names.emplace_back(known.name);
  std::ranges::sort(names);
  return did_you_mean(model.substr(model.rfind('/') + 1), names);
}

// Whether this is a path and not OWNER/NAME: by how it begins or ends, or by its depth.
bool is_path(const std::string& named) {
  constexpr std::array kEndings = {".pt2",         ".pt",  ".mp",  ".py", ".json",
                                   ".safetensors", ".bin", ".pth", ".txt"};
  return named.starts_with(".") || named.starts_with("/") || std::ranges::count(named, '/') > 1 ||
         std::ranges::any_of(kEndings, [&](const char* ending) { return named.ends_with(ending); });
}

// "meta-llama/Llama-3.1-8B" is llama-3.1-8b: owners and case do not matter. Empty: no model of that name is
// built in, or a path is meant.
std::string builtin_meant(const std::string& named) {
  if (is_path(named)) return "";
  return builtin_named(named);
}

// NAME and NAME.pt2 are looked for here and in the folders that METAPROF_MODELS lists; a path stands for itself. Empty: the
// model of that name is built in.
std::string path_of_model(const std::string& named) {
  const std::string model = named.ends_with(".pt2") ? named.substr(0, named.size() - 4) : named;
  if (is_there(named)) return named;
  if (builtin_meant(named).empty() &&
      (is_path(model) || (named.ends_with(".pt2") && model.find('/') != std::string::npos)))
    return named;
  std::string folders = ".:";
  if (const char* listed = std::getenv("METAPROF_MODELS")) folders += listed;
  for (size_t begin = 0; begin < folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = folders.substr(begin, end - begin);
    begin = end + 1;
    if (folder.empty()) continue;
    std::string path = fmt::format("{}{}.pt2", folder == "." ? "" : folder + "/", model);
    if (is_there(path)) return path;
  }
  if (!builtin_meant(named).empty()) return "";
  fail("{}: no such file, and no {}.pt2 here or in the folders of METAPROF_MODELS ({}){}", named, model,
       folders.size() > 2 ? folders.substr(2) : "not set", models_meant(model, folders));
}

Program read_program(const std::string& path, const std::string& program) {
  if (path.ends_with(".py"))
    fail("{}: is Python's text; run it, export its model with torch.export.save, and give the .pt2", path);
  if (path.ends_with(".safetensors") || path.ends_with(".bin") || path.ends_with(".pth"))
    fail(
        "{}: has weights and no program: metaprof inspect shows them; export the model with "
        "torch.export.save and give the "
        ".pt2, or give its config.json",
        path);
  return is_program_file(path) ? read_program_file(path) : read_pt2(path, {.program = program});
}

// "FILE.pt2:train" names one program of an archive that holds several.
std::pair<std::string, std::string> path_and_program(const std::string& named) {
  const size_t colon = named.rfind(".pt2:");
  if (colon == std::string::npos) return {named, ""};
  return {named.substr(0, colon + 4), named.substr(colon + 5)};
}

std::string plain(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += plain(std::string_view(&c, 1));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "RTX 4090", "4090" and "NVIDIA GeForce RTX 4090" are rtx4090, "A100-80GB" is a100: the card whose title has all these words and
// the fewest others. Null: none has, or several have as few.
const Hardware* hardware_meant(std::string_view named) {
  const std::string letters = plain(named);
  const std::vector<std::string> words = words_of(named);
  const bool numbered = letters.size() >= 3 && letters.find_first_of("0123456789") != std::string::npos;
  const Hardware* meant = nullptr;
  size_t fewest = SIZE_MAX;
  for (const Hardware& known : known_hardware()) {
    if (letters == plain(known.name) || letters == plain(known.title)) return &known;
    const std::vector<std::string> title = words_of(known.title);
    const bool all = std::ranges::all_of(
        words, [&](const std::string& word) { return std::ranges::find(title, word) != title.end(); });
    if (!numbered || !all || title.size() > fewest) continue;
    meant = title.size() < fewest ? &known : nullptr;
    fewest = title.size();
  }
  return meant;
}

Platform load_device(const std::string& device) {
  if (device.ends_with(".json")) return read_device_file(device);
  if (const Hardware* known = find_hardware(device)) return platform_named(known->name);
  if (const Hardware* meant = hardware_meant(device)) return platform_named(meant->name);
  std::vector<std::string> names;
  for (const Hardware& known : known_hardware()) names.push_back(known.name);
  fail(
      "--device: there is no device '{}'; `metaprof devices` lists those that are known, and files FILE.json "
      "describe "
      "others{}",
      device, did_you_mean(device, names));
}

bool is_program_text(const std::string& text) {
  return text.starts_with("\x1f\x8b") || text.starts_with("metaprof program");
}

Program program_in(const std::string& text) {
  const FileInMemory file(text);
  const std::string path = file.path();
  try {
    return is_program_text(text) ? read_program_file(path) : read_pt2(path);
  } catch (const Error& error) {
    std::string message = error.what();
    for (size_t at = 0; (at = message.find(path)) != std::string::npos;)
      message.replace(at, path.size(), "-");
    throw Error(message);
  }
}

// What options make of a model besides the sizes of its inputs.
void adapt(Program& program, const RunOptions& options) {
  const std::optional<DType> autocast = autocast_dtype(options.step.precision);
  if (!options.base_weights.empty())
    keep_base_weights(program, options.base_weights, autocast, options.lora.empty());
  if (!options.lora.empty()) add_lora(program, parse_lora(options.lora), autocast.has_value());
}

void check_cache(const RunOptions& options) {
  if (!options.kv_cache) return;
  if (options.step.mode != Mode::inference && options.step.mode != Mode::no_grad)
    fail("--kv-cache: a cache is for inference: give --mode inference, too");
  if (autocast_dtype(options.step.precision))
    fail("--kv-cache: takes --precision fp32, bf16 or fp16, as models are served");
}

ScriptMode script_mode(const StepOptions& step) {
  ScriptMode mode{.training = step.mode == Mode::train,
                  .gradients = step.mode == Mode::train || step.mode == Mode::eval};
  if (!step.condition.empty()) mode.condition = step.condition == "true";
  return mode;
}

Program built_of_script(const Model& model, const RunOptions& options) {
  if (options.sequence || !options.settings.empty())
    fail("{}: an archive of torch.jit.save takes --input and --batch, and no --sequence or --set",
         model.name);
  Program program =
      model.script->program(script_inputs(options.inputs, options.batch), script_mode(options.step));
  adapt(program, options);
  return program;
}

Program built(const Model& model, const RunOptions& options) {
  if (model.script) return built_of_script(model, options);
  check_cache(options);
  Program program = model.build({.batch = options.batch,
                                 .sequence = options.sequence,
                                 .cached = options.kv_cache,
                                 .inputs = sizes_of_settings(options.settings),
                                 .own_loss = options.loss == "transformers"});
  adapt(program, options);
  return program;
}

// A configuration may be read by several threads, later.
BuiltinModel builder_of(std::shared_ptr<const ConfigFile> config) {
  return [config = std::move(config)](const InputSizes& sizes) { return config->program(sizes); };
}

// Other models say themselves what they take.
void check_inputs_are_known(const Model& model, const RunOptions& options) {
  if (!options.inputs.empty() && !model.script)
    fail(
        "--input: {} says what it takes; --set NAME=SHAPE changes it, and only archives of torch.jit.save "
        "need --input",
        model.name);
}

void build(Model& model, const RunOptions& options) {
  model.program = built(model, options);
  model.inputs = inputs_asked_by(options);
}

// The standard input, as its first bytes say.
Model read_piped_model(const RunOptions& options) {
  const std::string text = read_file("-", kMostTextBytes, "a model");
  Model model;
  model.inputs = inputs_asked_by({});
  if (is_program_text(text) || text.starts_with("PK")) {
    model.program = program_in(text);
  } else if (const size_t first = text.find_first_not_of(" \t\r\n");
             first != std::string::npos && text[first] == '{') {
    model.build = builder_of(std::make_shared<ConfigFile>(text, "stdin"));
    build(model, options);
  } else {
    model.trace = parse_trace(text, "-");
    if (model.trace->events.empty()) fail("-: the trace has no events");
  }
  model.name = model.program.name = "stdin";
  model.program.origin = "-";
  return model;
}

}  // namespace

Model read_model(const std::string& named, const RunOptions& options) {
  if (named == "-") return read_piped_model(options);
  Model model;
  model.inputs = inputs_asked_by({});
  if (named.ends_with(".trace")) {
    model.name = std::filesystem::path(named).stem().string();
    model.trace = parse_trace(read_text_file(named), named);
    if (model.trace->events.empty()) fail("{}: the trace has no events", named);
    return model;
  }
  if (names_module(named)) {
    model.program = captured_module(named, options);
  } else if (is_config_path(named)) {
    model.build = builder_of(std::make_shared<ConfigFile>(named));
    build(model, options);
  } else {
    const auto [path, program] = path_and_program(named);
    if (const std::string file = path_of_model(path); is_script_file(file)) {
      model.name = file;
      model.script = std::make_shared<const ScriptFile>(file);
      build(model, options);
    } else if (!file.empty()) {
      model.program = read_program(file, program);
    } else {
      model.build = builtin_model(builtin_meant(named));
      build(model, options);
    }
  }
  model.name = model.program.name;
  return model;
}

void require_whole_step(const Model& model) {
  const auto& captured = model.program.captured;
  if (captured && !captured->unfinished.empty())
    fail(
        "{}: the run was ended by {}, so what a whole step takes is not known: run it to the end of a step, "
        "with more --memory if it ran out",
        model.program.origin, captured->unfinished);
}

Model model_of(Program program) {
  Model model;
  model.name = program.name;
  model.program = std::move(program);
  model.inputs = inputs_asked_by({});
  return model;
}

std::optional<Program> changed_inputs(const Model& model, const RunOptions& options) {
  std::optional<Program> changed;
  check_inputs_are_known(model, options);
  if (inputs_asked_by(options) != model.inputs) {
    if (model.build || model.script) {
      changed = built(model, options);
    } else {
      if (options.loss != "plain")
        fail("--loss: {}: only models of a configuration (config.json) take it; an export has its own loss",
             model.name);
      if (options.kv_cache)
        fail(
            "--kv-cache: {}: only models of a configuration (config.json) can be given a cache; export the "
            "model "
            "with one",
            model.name);
      changed = model.program;
      set_inputs(*changed, options.batch, options.sequence, options.settings);
      adapt(*changed, options);
    }
  }
  check_positions(changed ? *changed : model.program);
  return changed;
}

Program with_inputs(const Model& model, const RunOptions& options) {
  std::optional<Program> changed = changed_inputs(model, options);
  if (changed) return std::move(*changed);
  return model.program;
}

Program traced_with_inputs(const Model& model, const RunOptions& options) {
  if (!model.program.traced) return with_inputs(model, options);
  Model traced;
  traced.program = *model.program.traced;
  traced.inputs = model.inputs;
  traced.name = model.name;
  return with_inputs(traced, options);
}

std::vector<std::string> warnings_of(const Model& model, const RunOptions& options) {
  std::vector<std::string> warnings;
  const auto warn = [&](const std::string& warning) { warnings.emplace_back(Error(warning).what()); };
  for (const std::string& warning : model.program.warnings) warn(warning);
  for (const auto& [symbol, what] : model.program.assumed)
    if (std::ranges::none_of(options.settings, [setting = symbol + "="](const std::string& set) {
          return set.starts_with(setting);
        }))
      warn(model.program.origin + ": " + what);
  if (model.program.followed > 0 && options.step.execution == Execution::graph)
    warn(fmt::format(
        "{}: PyTorch's graph keeps branches and loops, where fused kernels end; here they are followed, so "
        "that the figures of --execution graph may differ from PyTorch's",
        model.program.origin));
  if (options.step.condition.empty() && has_region(model.program.graph, RegionCall::Kind::branch))
    warn(fmt::format(
        "{}: data decide which function torch.cond calls: profile shows both, other commands take the first "
        "one; --condition true or false chooses",
        model.program.origin));
  if (!options.step.trips && has_region(model.program.graph, RegionCall::Kind::loop))
    warn(
        fmt::format("{}: data decide how often while_loop runs its body: one trip is assumed, and profile "
                    "shows two beside it; "
                    "--trips N says how many there are",
                    model.program.origin));
  if (options.step.mode == Mode::train && has_region(model.program.graph, RegionCall::Kind::scan))
    warn(fmt::format(
        "{}: PyTorch divides gradients of scan's function into two graphs by a minimal cut, which is not "
        "modelled: the "
        "training step is one of a loop that keeps what every call saves, so that its memory differs",
        model.program.origin));
  const std::string of_framework = framework_for(options, model.program).warning;
  if (!of_framework.empty()) warn(of_framework);
  return warnings;
}

Platform device_of(const RunOptions& options) {
  Platform platform = load_device(options.device);
  if (!options.memory.empty()) platform.hardware.memory = parse_size(options.memory);
  return platform;
}

MeasuredRates measured_rates(const RunOptions& options) {
  return options.device.ends_with(".json") ? read_measured_rates(options.device) : MeasuredRates();
}

Platform platform_of(const RunOptions& options, const Program& program) {
  return with_framework(device_of(options), framework_for(options, program).version);
}

std::string read_text_file(const std::string& path) { return read_file(path, kMostTextBytes, "a text file"); }

}  // namespace metaprof
