#include "validation/steps/measurement.h"

#include <algorithm>

#include "core/error.h"
#include "step/options_json.h"

namespace metaprof {
namespace {

RunOptions options_of(const Member& config) {
  for (const char* name : {"device", "precision", "optimizer", "steps"}) (void)config.at(name);
  RunOptions options;
  // Sizes of inputs are those of the export; the environment is an object of its own.
  read_options(config, options,
               {"batch", "sequence", "set", "memory", "context", "margin", "workspaces", "env"});
  if (const auto environment = config.find("env"))
    environment->for_each_member(
        [&](const std::string& name, const Member& value) { options.step.environment[name] = value.text(); });
  if (const auto over = config.find("over"); over && !over->empty())
    over->reject("{}: options of the model's constructor are in its export");
  return options;
}

// What a comparison needs of the statistics after one part of the run.
void check_phase(const Member& row, const RecordedPhase& phase) {
  if (!phase.part) row.at("phase").reject("setup, forward, backward, optimizer or zero_grad");
  row.at("allocated_bytes").at("current");
  row.for_each_member([](const std::string&, const Member& member) {
    if (!member.is_object() || (!member.find("current") && !member.find("peak"))) return;
    const int64_t current = member.at("current").count(), peak = member.at("peak").count();
    if (peak < current)
      fail("{}: the peak {} is below the current value {}; do they have the same unit?", member.where(), peak,
           current);
  });
}

MeasuredInput input_of(const Member& input) {
  MeasuredInput result;
  result.dtype = input.at("dtype").text();
  input.at("shape").for_each([&](const Member& size) { result.sizes.push_back(size.count()); });
  return result;
}

// A real device plans; an emulated one says so.
bool has_planned_workspaces(const Member& root) {
  const auto emulated = root.find("emulated");
  return !emulated || !emulated->boolean() || root.find("workspaces").has_value();
}

std::optional<int> cudnn_of(const std::optional<Member>& cudnn) {
  if (!cudnn) return {};
  if (cudnn->count() > 1'000'000) cudnn->reject("cuDNN's version as it says it: 91900 is 9.19.0");
  return static_cast<int>(cudnn->count());
}

Measurement recording_of(const std::filesystem::path& path, const Member& root) {
  const Member config = root.at("config");
  const auto emulated = root.find("emulated");
  Measurement measurement{.head = head_of(path, root),
                          .on = emulated && emulated->boolean() ? MeasuredOn::emulated : MeasuredOn::real,
                          .device_title = root.optional_text("device").value_or(""),
                          .torch = root.optional_text("torch").value_or(""),
                          .cuda = {},
                          .id = root.at("id").text(),
                          .model = config.at("model").text(),
                          .batch = config.optional_count("batch"),
                          .seq = config.optional_count("seq"),
                          .image = config.optional_count("image"),
                          .options = options_of(config),
                          .cudnn = cudnn_of(root.find("cudnn")),
                          .planned_workspaces = has_planned_workspaces(root),
                          .parameter_tensors = root.at("parameters").at("tensors").count(),
                          .inputs = {}};
  root.at("inputs").for_each([&](const Member& input) { measurement.inputs.push_back(input_of(input)); });
  auto phase = measurement.head.phases.begin();
  root.at("phases").for_each([&](const Member& row) { check_phase(row, *phase++); });
  if (measurement.head.phases.empty()) root.at("phases").reject("at least one phase");
  return measurement;
}

// The first of the outermost modules that has parameters is the model; losses and the like have none.
void read_models(Measurement& measurement, const Member& models) {
  int64_t parameters = 0;
  models.for_each([&](const Member& model) {
    const int64_t own = model.at("parameters").at("tensors").count();
    if (own > 0 && parameters == 0)
      model.at("inputs").for_each(
          [&](const Member& input) { measurement.inputs.push_back(input_of(input)); });
    parameters += own;
  });
  if (parameters > 0) measurement.parameter_tensors = parameters;
}

// What the program did within a part is of the part.
void join_rows(std::vector<RecordedPhase>& rows) {
  std::vector<RecordedPhase> joined;
  bool within = false;  // the latest row
  for (RecordedPhase& row : rows) {
    const bool goes_on = !joined.empty() && joined.back().part == row.part && (within || row.within);
    within = row.within;
    if (!goes_on) {
      joined.push_back(std::move(row));
      continue;
    }
    for (auto& [field, number] : joined.back().numbers) {
      const int64_t later = row.number(field->name()).value_or(number);
      number = field->name().ends_with(".peak") ? std::max(number, later) : later;
    }
  }
  rows = std::move(joined);
}

Measurement run_of(const std::filesystem::path& path, const Member& root) {
  const Member rank = largest_rank(root), framework = root.at("framework");
  Measurement measurement{.head = head_of(path, root),
                          .on = root.at("emulated").boolean() ? MeasuredOn::emulated : MeasuredOn::real,
                          .device_title = rank.at("device_title").text(),
                          .torch = framework.optional_text("version").value_or(""),
                          .cuda = framework.optional_text("cuda").value_or(""),
                          .id = path.stem().string(),
                          .model = {},
                          .batch = {},
                          .seq = {},
                          .image = {},
                          .options = {},
                          .cudnn = cudnn_of(framework.find("cudnn")),
                          .parameter_tensors = {},
                          .inputs = {}};
  auto phase = measurement.head.phases.begin();
  rank.at("phases").for_each([&](const Member& row) {
    if (phase->part) check_phase(row, *phase);
    ++phase;
  });
  if (measurement.head.phases.empty()) rank.at("phases").reject("at least one phase");
  // What follows the last part of the last step is no part of it.
  std::erase_if(measurement.head.phases, [](const RecordedPhase& row) { return !row.part; });
  join_rows(measurement.head.phases);
  if (const auto models = rank.find("models")) read_models(measurement, *models);
  if (rank.find("out_of_memory") && root.at("exit_status").count() != 0 && !measurement.head.phases.empty())
    measurement.head.phases.back().out_of_memory = "out of memory";
  return measurement;
}

// Steps that the engine has run, with the caching allocator's segments on a real device.
Measurement replay_of(const std::filesystem::path& path, const Member& root) {
  Measurement measurement;
  measurement.head = head_of(path, root);
  measurement.on = MeasuredOn::replayed;
  measurement.device_title = root.at("device").at("title").text();
  measurement.id = path.stem().string();
  if (measurement.head.phases.empty()) root.at("parts").reject("at least one part that was replayed");
  return measurement;
}

}  // namespace

std::string Measurement::export_name() const {
  std::string name = model;
  if (batch) name += ".b" + std::to_string(*batch);
  if (seq) name += ".s" + std::to_string(*seq);
  if (image) name += ".i" + std::to_string(*image);
  return name + ".pt2";
}

std::optional<std::filesystem::path> Measurement::log() const {
  std::filesystem::path log = head.path;
  log.replace_extension(".log.gz");
  std::error_code code;
  return std::filesystem::is_regular_file(log, code) ? std::optional(log) : std::nullopt;
}

int64_t Measurement::steps() const {
  int64_t steps = 0;
  for (const RecordedPhase& row : head.phases)
    if (row.part && row.part->phase != Phase::setup) steps = std::max<int64_t>(steps, row.part->step + 1);
  return steps;
}

Platform measured_on(const Measurement& measurement, Platform platform) {
  platform.hardware.memory = measurement.head.device_memory;
  if (const auto version = measurement.head.framework)
    platform = with_framework(std::move(platform), *version);
  if (measurement.cudnn) platform.libraries.cudnn = *measurement.cudnn;
  return platform;
}

bool says_no_options(const std::filesystem::path& path) try {
  const JsonText json(read_head_text(path), path.string(), kHeadHint);
  return kind_of(json.root()) != HeadKind::recording;
} catch (const Error&) {
  return false;
}

Measurement read_measurement(const std::filesystem::path& path) {
  const JsonText json(read_head_text(path), path.string(), kHeadHint);
  const Member root = json.root();
  switch (kind_of(root)) {
    case HeadKind::recording: return recording_of(path, root);
    case HeadKind::run: return run_of(path, root);
    case HeadKind::replay: return replay_of(path, root);
  }
  return {};
}

}  // namespace metaprof
