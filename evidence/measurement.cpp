#include "evidence/measurement.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "meta/core/error.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

using Json = nlohmann::json;

constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;  // a measurement of three steps has some 10 KiB
constexpr const char* kStatistics[] = {"allocated_bytes", "requested_bytes",      "active_bytes",
                                       "reserved_bytes",  "inactive_split_bytes", "allocation",
                                       "segment"};

// A member of an object, with the place where it stands for messages.
struct Member {
  const Json& value;
  std::string where;  // "gpt2.json: config.steps"

  [[noreturn]] void reject(std::string_view expected) const {
    const std::string found = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    fail("{}: expected {}, got {}", where, expected, found.substr(0, 60));
  }
  Member at(const std::string& key) const {
    if (!value.is_object()) reject("an object");
    const auto found = value.find(key);
    if (found == value.end())
      fail("{}: '{}' is missing; a measurement is what tools/record_pytorch.py writes", where, key);
    return {*found, where + (where.ends_with(".json") ? ": " : ".") + key};
  }
  // Nothing if it is missing or null.
  std::optional<Member> find(const std::string& key) const {
    if (!value.is_object()) reject("an object");
    const auto found = value.find(key);
    if (found == value.end() || found->is_null()) return std::nullopt;
    return Member{*found, where + (where.ends_with(".json") ? ": " : ".") + key};
  }
  std::string text() const {
    if (!value.is_string()) reject("a text");
    return value.get<std::string>();
  }
  int64_t count() const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0) reject("a whole number of at least 0");
    return value.get<int64_t>();
  }
  double real() const {
    if (!value.is_number()) reject("a number");
    return value.get<double>();
  }
  bool boolean() const {
    if (!value.is_boolean()) reject("true or false");
    return value.get<bool>();
  }
  template <class Function>  // Function(Member element)
  void for_each(Function function) const {
    if (!value.is_array()) reject("a list");
    for (size_t i = 0; i < value.size(); ++i)
      function(Member{value[i], where + "[" + std::to_string(i) + "]"});
  }
};

Json parse_file(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) fail("{}: no such file", path.string());
  if (std::filesystem::file_size(path, code) > kMostBytes || code)
    fail("{}: too large for a measurement", path.string());
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    fail("{}: is no JSON, or was cut off; a measurement is what tools/record_pytorch.py writes",
         path.string());
  return json;
}

std::optional<int64_t> optional_count(const Member& object, const std::string& key) {
  const auto member = object.find(key);
  return member ? std::optional(member->count()) : std::nullopt;
}

std::optional<double> optional_real(const Member& object, const std::string& key) {
  const auto member = object.find(key);
  return member ? std::optional(member->real()) : std::nullopt;
}

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
  step.clip_norm = optional_real(config, "clip_norm");
  step.clip_value = optional_real(config, "clip_value");
  flag("zero_grad_to_none", step.zero_grad_to_none);
  flag("channels_last", step.channels_last);
  text("checkpoint", step.checkpoint);
  flag("checkpoint_reentrant", step.checkpoint_reentrant);
  text("mode", step.mode);
  text("alloc_conf", options.alloc_conf);
  if (const auto environment = config.find("env"))
    for (const auto& [name, value] : environment->value.items())
      step.environment[name] = Member{value, environment->where + "." + name}.text();
  if (const auto over = config.find("over"); over && !over->value.empty())
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
      fail("{}: the peak {} is below the current value {}; do they have the same unit?", member->where,
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
  const Json json = parse_file(path);
  const Member root{json, path.string()};
  const Member config = root.at("config");
  Measurement measurement{.path = path,
                          .id = root.at("id").text(),
                          .model = config.at("model").text(),
                          .batch = optional_count(config, "batch"),
                          .seq = optional_count(config, "seq"),
                          .image = optional_count(config, "image"),
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
