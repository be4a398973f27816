#pragma once
// Bytes of every phase of some steps, as recorders write them and as an estimate has them: a text a phase, to be compared.

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "core/formats/json.h"
#include "profiler/allocator/phases.h"
#include "tests/read_file.h"

namespace metaprof {

/// A file of evidence that tools/record/recorded_phases.py wrote.
class RecordedModels {
 public:
  explicit RecordedModels(const std::string& path) : text_(read_file(path)), document_(text_, path) {}
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    models().for_each_member([&](std::string_view name, const Json&) { names.emplace_back(name); });
    return names;
  }
  Json of(const std::string& name) const { return models().at(name); }

 private:
  Json models() const { return document_.root().at("models"); }
  std::string text_;
  JsonDocument document_;
};

inline std::string row(std::string_view phase, int64_t step, const std::array<int64_t, 4>& bytes) {
  return fmt::format("{} {} allocated {} peak {} reserved {} peak {}", phase, step, bytes[0], bytes[1],
                     bytes[2], bytes[3]);
}

inline int64_t integer_at(const Json& list, size_t index) {
  std::vector<int64_t> integers;
  list.for_each([&](const Json& element) { integers.push_back(element.integer()); });
  return integers.at(index);
}

inline std::vector<std::string> rows_of(const Json& phases) {
  std::vector<std::string> rows;
  phases.for_each([&](const Json& phase) {
    const auto both = [&](const char* key, size_t i) { return integer_at(phase.at(key), i); };
    rows.push_back(
        row(phase.at("phase").string(), phase.at("step").integer(),
            {both("allocated", 0), both("allocated", 1), both("reserved", 0), both("reserved", 1)}));
  });
  return rows;
}

inline std::vector<std::string> rows_of(const Phases& phases) {
  std::vector<std::string> rows;
  for (const PhaseRow& phase : phases.rows)
    rows.push_back(row(to_string(phase.part.phase), phase.part.step,
                       {phase.numbers.allocated_bytes.current, phase.numbers.allocated_bytes.peak,
                        phase.numbers.reserved_bytes.current, phase.numbers.reserved_bytes.peak}));
  return rows;
}

}  // namespace metaprof
