#include "validation/recordings/head.h"

#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "core/formats/file.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;  // a head of three steps has some 10 KiB

std::optional<FrameworkVersion> version_of(const std::optional<Member>& torch) {
  if (!torch) return {};
  try {
    return parse_framework_version(torch->text());
  } catch (const Error& error) {
    fail("{}: {}", torch->where(), error.what());
  }
}

// The configuration's own, which is PYTORCH_ALLOC_CONF, or what the environment of the process says; as far as
// the framework reads it.
std::string allocator_settings(const Member& config, const Framework& framework) {
  std::string settings;
  const auto take = [&](const std::optional<Member>& from, const char* name) {
    if (settings.empty() && from) settings = from->optional_text(name).value_or("");
  };
  const auto environment = config.find("env");
  if (framework.reads_alloc_conf) {
    take(config, "alloc_conf");
    take(environment, "PYTORCH_ALLOC_CONF");
  }
  take(environment, "PYTORCH_CUDA_ALLOC_CONF");
  return settings;
}

// A row says "allocated_bytes": {"peak": …} for all pools and "small_pool": {"allocated": …} for one.
const StatisticField* field_of(const std::string& group, const std::string& key) {
  if (group == "small_pool" || group == "large_pool")
    return StatisticField::find(key + "_bytes." + group + ".current");
  return StatisticField::find(group + ".all." + key);
}

void add_number(RecordedPhase& phase, const StatisticField* field, const std::string& name,
                const Member& number) {
  if (field)
    phase.numbers.emplace_back(field, number.count());
  else if (phase.unknown.empty())
    phase.unknown = name;
}

RecordedPhase phase_of(const Member& row) {
  RecordedPhase phase;
  phase.name = row.at("phase").text();
  StepPart part;
  if (const auto step = row.optional_count("step")) {
    part.step = static_cast<uint32_t>(*step);
    phase.name += " step " + std::to_string(*step);
  }
  if (const auto micro = row.optional_count("micro")) {
    part.micro = *micro;
    phase.name += " micro " + std::to_string(*micro);
  }
  const auto within = row.optional_text("within");
  phase.within = within.has_value();
  if (const auto known = phase_named(within.value_or(row.at("phase").text()))) {
    part.phase = *known;
    phase.part = part;
  }
  row.for_each_member([&](const std::string& key, const Member& value) {
    if (key == "phase" || key == "step" || key == "micro" || key == "within" || key == "seconds") return;
    if (key == "out_of_memory")
      phase.out_of_memory = row.optional_text("out_of_memory");
    else if (value.is_object())
      value.for_each_member([&](const std::string& inner, const Member& number) {
        add_number(phase, field_of(key, inner), key + "." + inner, number);
      });
    else
      add_number(phase, StatisticField::find(key), key, value);
  });
  return phase;
}

RecordingHead head_of_run(const std::filesystem::path& path, const Member& root) {
  const Member rank = largest_rank(root);
  RecordingHead head{.path = path,
                     .kind = HeadKind::run,
                     .framework = version_of(root.at("framework").find("version")),
                     .alloc_conf = rank.optional_text("alloc_conf").value_or(""),
                     .device_memory = {rank.at("device_memory").count()},
                     .phases = {}};
  rank.at("phases").for_each([&](const Member& row) { head.phases.push_back(phase_of(row)); });
  return head;
}

// "setup", "step 1 backward", "step 1 backward micro 0": steps count from 0.
RecordedPhase replayed_phase_of(const Member& row) {
  RecordedPhase phase;
  phase.name = row.at("part").text();
  std::istringstream words(phase.name);
  std::string word;
  StepPart part;
  while (words >> word) {
    if (word == "step")
      words >> part.step;
    else if (word == "micro")
      words >> part.micro;
    else if (const auto known = phase_named(word))
      part.phase = *known, phase.part = part;
  }
  if (!words.eof() || !phase.part) row.at("part").reject("a part of training steps, as \"step 0 backward\"");
  phase.part = part;
  row.at("real").for_each_member([&](const std::string& key, const Member& value) {
    const std::string name = key == "blocks" ? "allocation" : key == "segments" ? "segment" : key;
    value.for_each_member([&](const std::string& which, const Member& number) {
      add_number(phase, field_of(name, which), name + "." + which, number);
    });
  });
  return phase;
}

// What the allocator did on the device; an estimate's part that the device did not come to has no figures.
RecordingHead head_of_replay(const std::filesystem::path& path, const Member& root) {
  RecordingHead head{.path = path,
                     .kind = HeadKind::replay,
                     .framework = {},
                     .alloc_conf = root.at("allocator").text(),
                     .device_memory = {root.at("device").at("memory_bytes").count()},
                     .phases = {}};
  root.at("parts").for_each([&](const Member& row) {
    if (row.find("real")) head.phases.push_back(replayed_phase_of(row));
  });
  return head;
}

}  // namespace

std::optional<int64_t> RecordedPhase::number(std::string_view field) const {
  const auto found = std::ranges::find_if(numbers, [&](const auto& n) { return n.first->name() == field; });
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

Framework framework_of(const RecordingHead& head) {
  return head.framework ? framework_of(*head.framework) : Framework();
}

HeadKind kind_of(const Member& root) {
  const auto schema = root.find("schema");
  if (!schema) return HeadKind::recording;
  const std::string name = schema->text();
  if (name != "metaprof.run" && name != "metaprof.replay")
    schema->reject("\"metaprof.run\" or \"metaprof.replay\"");
  if (const Member version = root.at("schema_version"); version.count() != 1) version.reject("1");
  return name == "metaprof.run" ? HeadKind::run : HeadKind::replay;
}

Member largest_rank(const Member& root) {
  std::optional<Member> largest;
  int64_t most = -1;
  root.at("ranks").for_each([&](const Member& rank) {
    int64_t peak = 0;
    rank.at("phases").for_each(
        [&](const Member& phase) { peak = std::max(peak, phase.at("reserved_bytes").at("peak").count()); });
    if (peak > most) most = peak, largest = rank;
  });
  if (!largest) root.at("ranks").reject("at least one process that used a device");
  return *largest;
}

RecordingHead head_of(const std::filesystem::path& path, const Member& root) {
  const HeadKind kind = kind_of(root);
  if (kind == HeadKind::run) return head_of_run(path, root);
  if (kind == HeadKind::replay) return head_of_replay(path, root);
  RecordingHead head{.path = path,
                     .framework = version_of(root.find("torch")),
                     .alloc_conf = {},
                     .device_memory = {root.at("device_memory").count()},
                     .phases = {}};
  if (const auto emulated = root.find("emulated")) head.real_device = !emulated->boolean();
  head.alloc_conf = allocator_settings(root.at("config"), framework_of(head));
  root.at("phases").for_each([&](const Member& row) { head.phases.push_back(phase_of(row)); });
  return head;
}

std::string read_head_text(const std::filesystem::path& path) {
  return read_file(path, kMostBytes, "a measurement");
}

}  // namespace metaprof
