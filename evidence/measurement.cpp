#include "evidence/measurement.h"

#include "core/error.h"
#include "formats/file.h"
#include "formats/json_member.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;  // a measurement of three steps has some 10 KiB
constexpr const char* kHint = "a measurement is what tools/record_pytorch.py writes";
constexpr const char* kStatistics[] = {"allocated_bytes", "requested_bytes",      "active_bytes",
                                       "reserved_bytes",  "inactive_split_bytes", "allocation",
                                       "segment"};

MeasuredOptions options_of(const Member& config) {
  MeasuredOptions options;
  StepOptions& step = options.step;
  const auto text = [&](const char* key, std::string& into) {
    if (const auto member = config.find(key)) into = member->text();
  };
  const auto flag = [&](const char* key, bool& into) {
    if (const auto member = config.find(key)) into = member->boolean();
  };
  options.device = config.at("device").text();
  step.precision = config.at("precision").text();
  step.optimizer = config.at("optimizer").text();
  step.steps = static_cast<int>(config.at("steps").count());
  if (step.steps < 1 || step.steps > 1000) config.at("steps").reject("1 to 1000 steps");
  text("optimizer_impl", step.optimizer_impl);
  if (const auto micro_batches = config.find("accumulate")) {
    step.accumulate = static_cast<int>(micro_batches->count());
    if (step.accumulate < 1 || step.accumulate > 1000) micro_batches->reject("1 to 1000 micro-batches");
  }
  step.clip_norm = config.optional_real("clip_norm");
  step.clip_value = config.optional_real("clip_value");
  flag("zero_grad_to_none", step.zero_grad_to_none);
  flag("channels_last", step.channels_last);
  text("checkpoint", step.checkpoint);
  flag("checkpoint_reentrant", step.checkpoint_reentrant);
  text("mode", step.mode);
  text("alloc_conf", options.alloc_conf);
  if (const auto environment = config.find("env"))
    environment->for_each_member(
        [&](const std::string& name, const Member& value) { step.environment[name] = value.text(); });
  if (const auto over = config.find("over"); over && !over->empty())
    over->reject("{}: options of the model's constructor are in its export");
  return options;
}

StepPart part_of(const Member& row) {
  const Member name = row.at("phase");
  const auto phase = phase_named(name.text());
  if (!phase) name.reject("setup, forward, backward, optimizer or zero_grad");
  StepPart part{.phase = *phase};
  if (const auto step = row.find("step")) part.step = static_cast<uint32_t>(step->count());
  if (const auto micro = row.find("micro")) part.micro = micro->count();
  return part;
}

MeasuredPhase phase_of(const Member& row) {
  MeasuredPhase phase;
  phase.part = part_of(row);
  for (const char* name : kStatistics) {
    const auto member = row.find(name);
    if (!member) continue;
    const AllocatorNumber number{member->at("current").count(), member->at("peak").count()};
    if (number.peak < number.current)
      fail("{}: the peak {} is below the current value {}; do they have the same unit?", member->where(),
           number.peak, number.current);
    phase.numbers[name] = number;
  }
  if (!phase.numbers.contains("allocated_bytes")) row.at("allocated_bytes");
  phase.out_of_memory = row.find("out_of_memory").has_value();
  return phase;
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

}  // namespace

std::string Measurement::export_name() const {
  std::string name = model;
  if (batch) name += ".b" + std::to_string(*batch);
  if (seq) name += ".s" + std::to_string(*seq);
  if (image) name += ".i" + std::to_string(*image);
  return name + ".pt2";
}

std::optional<std::filesystem::path> Measurement::log() const {
  std::filesystem::path log = path;
  log.replace_extension(".log.gz");
  std::error_code code;
  return std::filesystem::is_regular_file(log, code) ? std::optional(log) : std::nullopt;
}

Measurement read_measurement(const std::filesystem::path& path) {
  const JsonText json(read_file(path, kMostBytes, "a measurement"), path.string(), kHint);
  const Member root = json.root();
  const Member config = root.at("config");
  Measurement measurement{.path = path,
                          .id = root.at("id").text(),
                          .model = config.at("model").text(),
                          .batch = config.optional_count("batch"),
                          .seq = config.optional_count("seq"),
                          .image = config.optional_count("image"),
                          .options = options_of(config),
                          .device_memory = {root.at("device_memory").count()},
                          .planned_workspaces = has_planned_workspaces(root),
                          .parameter_tensors = root.at("parameters").at("tensors").count(),
                          .inputs = {},
                          .phases = {}};
  root.at("inputs").for_each([&](const Member& input) { measurement.inputs.push_back(input_of(input)); });
  root.at("phases").for_each([&](const Member& row) { measurement.phases.push_back(phase_of(row)); });
  if (measurement.phases.empty()) root.at("phases").reject("at least one phase");
  return measurement;
}

}  // namespace metaprof
