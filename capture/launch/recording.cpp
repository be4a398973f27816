#include "capture/launch/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/formats/file.h"
#include "core/formats/json.h"
#include "meta/trace/text.h"

namespace metaprof {
namespace {

namespace fs = std::filesystem;
constexpr uintmax_t kMostBytes = uintmax_t{4} << 30;

std::string text_of(const Json& row, std::string_view key) {
  const Json value = row.find(key);
  return value ? value.string() : std::string();
}

int64_t number_of(const Json& row, std::string_view key) {
  const Json value = row.find(key);
  return value ? value.integer() : 0;
}

RecordedModel model_of(const Json& row) {
  const Json parameters = row.at("parameters");
  RecordedModel model{row.at("type").string(),
                      parameters.at("tensors").integer(),
                      parameters.at("trainable").integer(),
                      parameters.at("bytes").integer(),
                      {}};
  row.at("inputs").for_each([&](const Json& input) {
    auto& recorded = model.inputs.emplace_back();
    input.at("shape").for_each([&](const Json& size) { recorded.first.push_back(size.integer()); });
    recorded.second = input.at("dtype").string();
  });
  return model;
}

AllocatorNumber allocator_number(const Json& row, std::string_view key) {
  const Json value = row.at(key);
  return {value.at("current").integer(), value.at("peak").integer()};
}

AllocatorNumbers allocator_numbers(const Json& row) {
  AllocatorNumbers numbers;
  numbers.allocated_bytes = allocator_number(row, "allocated_bytes");
  numbers.requested_bytes = allocator_number(row, "requested_bytes");
  numbers.active_bytes = allocator_number(row, "active_bytes");
  numbers.reserved_bytes = allocator_number(row, "reserved_bytes");
  numbers.inactive_split_bytes = allocator_number(row, "inactive_split_bytes");
  numbers.allocation = allocator_number(row, "allocation");
  numbers.segment = allocator_number(row, "segment");
  return numbers;
}

int device_number(std::string_view text, const Json& row) {
  int number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    row.reject("expected the number of a device");
  return number;
}

// Reads the rows of one process.
class Reader {
 public:
  explicit Reader(fs::path folder) : folder_(std::move(folder)) {}

  RecordedProcess read(const fs::path& file) {
    const std::string text = read_file(file, kMostBytes, "a recording");
    int64_t line = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      if (end == text.npos) break;  // cut off
      const JsonDocument document(std::string_view(text).substr(begin, end - begin),
                                  fmt::format("{}:{}", file.string(), ++line));
      row(document.root());
      begin = end + 1;
    }
    number_micro_batches();
    std::erase_if(process_.devices, [](const RecordedDevice& device) { return device.phases.empty(); });
    return std::move(process_);
  }

 private:
  RecordedDevice& device(int number) {
    for (RecordedDevice& device : process_.devices)
      if (device.device == number) return device;
    RecordedDevice& added = process_.devices.emplace_back();
    added.device = number;
    return added;
  }
  RecordedDevice& device_of(const Json& row) { return device(static_cast<int>(row.at("device").integer())); }

  // A row of a kind that is not known is of a later recorder, and says nothing that is read here.
  void row(const Json& row) {
    using Read = void (Reader::*)(const Json&);
    static const std::map<std::string_view, Read> kReads = {{"process", &Reader::process},
                                                            {"environment", &Reader::environment},
                                                            {"torch", &Reader::torch},
                                                            {"problem", &Reader::problem},
                                                            {"device", &Reader::used_device},
                                                            {"libraries", &Reader::libraries},
                                                            {"model", &Reader::model},
                                                            {"phase", &Reader::phase},
                                                            {"out_of_memory", &Reader::out_of_memory},
                                                            {"data_read", &Reader::data_read},
                                                            {"outside", &Reader::outside},
                                                            {"waiting", &Reader::waiting},
                                                            {"lent", &Reader::lent},
                                                            {"modules", &Reader::modules},
                                                            {"events", &Reader::events},
                                                            {"peak", &Reader::peak},
                                                            {"saving", &Reader::saving},
                                                            {"program", &Reader::program},
                                                            {"exception", &Reader::exception},
                                                            {"fixes", &Reader::fixes},
                                                            {"ended", &Reader::ended},
                                                            {"rank_ended", &Reader::rank_ended},
                                                            {"note", &Reader::note}};
    const auto read = kReads.find(row.at("row").string());
    if (read != kReads.end()) (this->*read->second)(row);
  }

  void torch(const Json& row) {
    process_.torch = row.at("version").string();
    process_.cuda = text_of(row, "cuda");
  }

  void used_device(const Json& row) {
    RecordedDevice& found = device_of(row);
    process_.used_device = true;
    found.title = row.at("name").string();
    found.memory = {row.at("memory").integer()};
  }

  void libraries(const Json& row) { process_.cudnn = number_of(row, "cudnn"); }
  void model(const Json& row) { process_.models.push_back(model_of(row)); }

  void out_of_memory(const Json& row) {
    device_of(row).out_of_memory.push_back({text_of(row, "phase"),
                                            number_of(row, "step"),
                                            text_of(row, "module"),
                                            text_of(row, "line"),
                                            text_of(row, "function"),
                                            {number_of(row, "requested")},
                                            {number_of(row, "allocated_bytes")},
                                            {number_of(row, "reserved_bytes")}});
  }

  void data_read(const Json& row) {
    device_of(row).reads.push_back(
        {row.at("op").string(), text_of(row, "line"), number_of(row, "count"), row.at("source").string()});
  }

  void outside(const Json& row) { device_of(row).outside_allocator = Bytes{row.at("bytes").integer()}; }

  void waiting(const Json& row) {
    device_of(row).waiting = {{row.at("bytes").integer()}, text_of(row, "line")};
  }

  void lent(const Json& row) { device_of(row).lent = {{row.at("bytes").integer()}, text_of(row, "line")}; }

  void modules(const Json& row) {
    for (RecordedDevice& each : process_.devices)
      row.at("types").for_each_member([&](std::string_view path, const Json& type) {
        each.module_types[std::string(path)] = type.string();
      });
  }

  void saving(const Json&) { process_.is_saving = true; }

  void program(const Json& row) {
    process_.is_saving = false;
    const fs::path file = folder_ / fs::path(row.at("file").string()).filename();
    process_.captured = read_file(file, kMostBytes, "a recording");
  }

  void exception(const Json& row) {
    process_.exception = {row.at("type").string(), text_of(row, "line"), text_of(row, "phase"),
                          number_of(row, "step"), row.at("out_of_memory").boolean()};
  }

  void fixes(const Json& row) {
    row.at("changes").for_each([&](const Json& fix) {
      process_.fixes.push_back({fix.at("name").string(), fix.at("change").string(), text_of(fix, "line"),
                                number_of(fix, "largest")});
    });
  }

  void ended(const Json&) { process_.ended_after_steps = true; }

  void rank_ended(const Json& row) {
    process_.failed_ranks.emplace_back(static_cast<int>(row.at("rank").integer()),
                                       static_cast<int>(row.at("status").integer()));
  }

  void note(const Json& row) { process_.notes.push_back(row.at("text").string()); }

  void process(const Json& row) {
    process_.pid = row.at("pid").integer();
    process_.parent = number_of(row, "parent");
    process_.program.clear();
    row.at("program").for_each([&](const Json& word) { process_.program.push_back(word.string()); });
    environment(row);
  }

  // What the program has set itself comes later, and counts.
  void environment(const Json& row) {
    row.at("environment").for_each_member([&](std::string_view name, const Json& value) {
      process_.environment[std::string(name)] = value.string();
    });
  }

  void problem(const Json& row) {
    if (row.at("kind").string() == "events") return process_.notes.push_back(row.at("text").string());
    process_.problem = row.at("kind").string();
    process_.problem_text = row.at("text").string();
  }

  void phase(const Json& row) {
    row.at("devices").for_each_member([&](std::string_view number, const Json& numbers) {
      RunPhase phase;
      phase.name = row.at("phase").string();
      phase.phase = row.find("within") ? row.at("within").string() : phase.name;
      phase.step = row.at("step").integer();
      phase.seconds = row.at("seconds").real();
      phase.numbers = allocator_numbers(numbers);
      phase.retries = number_of(numbers, "num_alloc_retries");
      phase.failures = number_of(numbers, "num_ooms");
      if (const Json calls = numbers.find("calls")) {
        phase.calls = calls.at("count").integer();
        phase.growth_by_call = {calls.at("growth").integer()};
        phase.calls_module = text_of(calls, "module");
        phase.calls_line = text_of(calls, "line");
      }
      device(device_number(number, row)).phases.push_back(std::move(phase));
    });
  }

  void events(const Json& row) {
    RecordedDevice& found = device_of(row);
    const fs::path file = folder_ / fs::path(row.at("file").string()).filename();
    found.trace = parse_trace(read_file(file, kMostBytes, "a recording"), file.string());
    found.unmatched = number_of(row, "unmatched");
    if (const std::string log = text_of(row, "log"); !log.empty())
      found.log = read_file(folder_ / fs::path(log).filename(), kMostBytes, "a recording");
    found.lines = by_storage(fs::path(file).replace_extension(".lines"), found.trace->storages.size());
    for (std::string& line : found.lines) line.resize(std::min(line.size(), line.rfind(' ')));
    found.made_in = by_storage(fs::path(file).replace_extension(".made"), found.trace->storages.size());
    found.held_by = by_storage(fs::path(file).replace_extension(".held"), found.trace->storages.size());
    for (std::string& held : found.held_by) {
      const size_t blank = std::min(held.find(' '), held.size());
      found.held_as.push_back(category_named(held.substr(0, blank)).value_or(Category::kept));
      held.erase(0, std::min(blank + 1, held.size()));
    }
  }

  // "NUMBER TEXT" in each line, by number.
  static std::vector<std::string> by_storage(const fs::path& file, size_t storages) {
    std::vector<std::string> found(storages);
    if (!fs::exists(file)) return found;
    const std::string text = read_file(file, kMostBytes, "a recording");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      const size_t blank = line.find(' ');
      size_t storage = 0;
      if (blank == line.npos ||
          std::from_chars(line.data(), line.data() + blank, storage).ec != std::errc() || storage >= storages)
        continue;
      found[storage] = line.substr(blank + 1);
    }
    return found;
  }

  void peak(const Json& row) {
    RecordedPeak& peak = device_of(row).peak.emplace();
    peak.allocated = {row.at("allocated_bytes").integer()};
    row.at("storages").for_each([&](const Json& each) {
      RecordedStorage& storage = peak.storages.emplace_back();
      storage.bytes = {each.at("bytes").integer()};
      storage.category = category_named(each.at("category").string()).value_or(Category::temporary);
      storage.name = text_of(each, "name");
      if (const auto dtype = dtype_named(text_of(each, "dtype"))) {
        storage.dtype = *dtype;
        Sizes& shape = storage.shape.emplace();
        each.at("shape").for_each([&](const Json& size) { shape.push_back(size.integer()); });
      }
      storage.line = text_of(each, "line");
      storage.made_in = text_of(each, "made_in");
      storage.held_by = text_of(each, "held_by");
    });
  }

  // Steps with several backward calls accumulate gradients: their forwards and backwards are numbered.
  void number_micro_batches() {
    for (RecordedDevice& device : process_.devices) {
      std::map<int64_t, std::map<std::string, int64_t>> count;
      for (const RunPhase& phase : device.phases) ++count[phase.step][phase.name];
      std::map<std::pair<int64_t, std::string>, int64_t> next;
      for (RunPhase& phase : device.phases)
        if (count[phase.step]["backward"] > 1 && (phase.phase == "forward" || phase.phase == "backward")) {
          int64_t& micro = next[{phase.step, phase.phase}];
          phase.micro = micro;
          micro += phase.name == phase.phase;
        }
    }
  }

  fs::path folder_;
  RecordedProcess process_;
};

std::vector<fs::path> process_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::optional<int> RecordedProcess::rank() const {
  const auto found = environment.find("RANK");
  int rank = 0;
  if (found == environment.end() ||
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), rank).ec !=
          std::errc())
    return std::nullopt;
  return rank;
}

std::vector<RecordedProcess> read_processes(const fs::path& folder) {
  std::vector<RecordedProcess> processes;
  for (const fs::path& file : process_files(folder)) {
    RecordedProcess& process = processes.emplace_back(Reader(folder).read(file));
    process.emulated = read_emulator_log(folder / fmt::format("{}.log", process.pid));
  }
  std::sort(processes.begin(), processes.end(), [](const RecordedProcess& a, const RecordedProcess& b) {
    const auto order = [](const RecordedProcess& p) {
      return std::tuple(p.devices.empty(), p.rank().value_or(0), p.pid);
    };
    return order(a) < order(b);
  });
  return processes;
}

Progress read_progress(const fs::path& folder) {
  Progress progress;
  for (const fs::path& file : process_files(folder)) {
    const std::string text = read_file(file, kMostBytes, "a recording");
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      if (end == text.npos) break;
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      if (line.find("\"row\": \"phase\"") == line.npos) continue;
      const JsonDocument document(line, file.string());
      const Json row = document.root();
      progress.any = true;
      progress.step = row.at("step").integer();
      progress.phase = row.at("phase").string();
      row.at("devices").for_each_member([&](std::string_view, const Json& numbers) {
        progress.peak = std::max(progress.peak, Bytes{numbers.at("reserved_bytes").at("peak").integer()});
      });
    }
  }
  return progress;
}

std::vector<RunPhase> rows_by_phase(const std::vector<RunPhase>& rows) {
  std::vector<RunPhase> found;
  bool named = false;  // the latest row
  for (const RunPhase& row : rows) {
    const bool was_named = std::exchange(named, row.name != row.phase);
    const bool goes_on = !found.empty() && found.back().phase == row.phase && found.back().step == row.step &&
                         found.back().micro == row.micro && (named || was_named);
    if (!goes_on) {
      found.push_back(row);
      found.back().name = row.phase;
      continue;
    }
    RunPhase& all = found.back();
    all.seconds = row.seconds;
    all.retries = row.retries;
    all.failures = row.failures;
    for (const auto member : kAllocatorNumbers) {
      (all.numbers.*member).current = (row.numbers.*member).current;
      (all.numbers.*member).peak = std::max((all.numbers.*member).peak, (row.numbers.*member).peak);
    }
  }
  return found;
}

}  // namespace metaprof
