#include "evidence/allocator/recording_head.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace metaprof {

namespace {

using nlohmann::json;

json parse_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    fail("{}: cannot be opened; a recording's configuration and statistics stand in the .json beside its log",
         path.string());
  }
  try {
    return json::parse(file);
  } catch (const json::exception& error) {
    fail("{}: is not valid JSON: {}", path.string(), error.what());
  }
}

const json& member(const json& object, const char* key, json::value_t type, const std::string& where) {
  const auto it = object.find(key);
  if (it == object.end() || it->type() != type) {
    fail("{}: '{}' is missing or not of the expected type; this is no head of a recording", where, key);
  }
  return *it;
}

std::string options_of(const json& config, const std::string& where) {
  std::string options = member(config, "alloc_conf", json::value_t::string, where).get<std::string>();
  if (!options.empty() || !config.contains("env")) return options;
  const json& env = member(config, "env", json::value_t::object, where);
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    if (env.contains(name)) return member(env, name, json::value_t::string, where).get<std::string>();
  }
  return options;
}

std::string phase_name(const json& row, const std::string& where) {
  std::string name = member(row, "phase", json::value_t::string, where).get<std::string>();
  for (const char* key : {"step", "micro"}) {
    if (!row.contains(key)) continue;
    const json& number = member(row, key, json::value_t::number_unsigned, where);
    name.append(" ").append(key).append(" ").append(std::to_string(number.get<std::uint64_t>()));
  }
  return name;
}

// A row says "allocated_bytes": {"peak": …} for all pools and "small_pool": {"allocated": …} for one.
const StatisticField* field_of(const std::string& group, const std::string& key) {
  if (group == "small_pool" || group == "large_pool") {
    return StatisticField::find(key + "_bytes." + group + ".current");
  }
  return StatisticField::find(group + ".all." + key);
}

RecordedPhase phase_of(const json& row, const std::string& where) {
  if (!row.is_object()) fail("{}: a phase must be an object", where);
  RecordedPhase phase;
  phase.name = phase_name(row, where);
  const auto add = [&](const StatisticField* field, const std::string& name, const json& value) {
    if (field == nullptr) fail("{}: phase '{}' has an unknown statistic '{}'", where, phase.name, name);
    if (!value.is_number_unsigned()) {
      fail("{}: phase '{}': {} must be a whole number of at least 0", where, phase.name, name);
    }
    phase.numbers.emplace_back(field, value.get<std::uint64_t>());
  };
  for (const auto& [key, value] : row.items()) {
    if (key == "phase" || key == "step" || key == "micro") continue;
    if (key == "out_of_memory") {
      phase.out_of_memory = member(row, "out_of_memory", json::value_t::string, where).get<std::string>();
    } else if (value.is_object()) {
      for (const auto& [inner, number] : value.items()) add(field_of(key, inner), key + "." + inner, number);
    } else {
      add(StatisticField::find(key), key, value);
    }
  }
  return phase;
}

}  // namespace

void read_recording_head(const std::filesystem::path& path, Recording& recording) {
  const std::string where = path.string();
  const json head = parse_file(path);
  if (!head.is_object()) fail("{}: must be an object; this is no head of a recording", where);
  const std::string options = options_of(member(head, "config", json::value_t::object, where), where);
  try {
    recording.conf = parse_alloc_conf(options);
  } catch (const Error& error) {
    fail("{}: {}", where, error.what());
  }
  recording.device_memory =
      member(head, "device_memory", json::value_t::number_unsigned, where).get<std::uint64_t>();
  for (const json& row : member(head, "phases", json::value_t::array, where)) {
    recording.phases.push_back(phase_of(row, where));
  }
}

}  // namespace metaprof
