#include "estimate/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "estimate/prepare/model.h"
#include "program/safetensors/inventory.h"

namespace metaprof {
namespace {

using Stored = std::map<std::string, const WeightsReport::Row*>;

const Sizes& sizes_of(const Program& program, const ProgramInput& input) {
  return program.graph.values[static_cast<size_t>(input.value)].tensor->sizes;
}

// One parameter by its names: stored under any of them, it is there.
void compare_parameter(WeightsComparison& comparison, const Stored& stored, const Sizes& sizes,
                       const std::vector<std::string>& names) {
  comparison.parameters += numel(sizes);
  bool found = false;
  for (const std::string& name : names) {
    const auto there = stored.find(name);
    if (there == stored.end()) continue;
    if (there->second->shape != sizes)
      comparison.shapes.push_back(fmt::format("{}: {} in the file, {} in the model", name,
                                              to_string(SizesView(there->second->shape)),
                                              to_string(SizesView(sizes))));
    if (!found) comparison.stored += there->second->elements;
    found = true;
  }
  if (!found) comparison.missing.push_back(names.front());
}

WeightsComparison compared(const WeightsReport& report, const std::string& path) {
  const Model model = read_model(path);
  if (model.is_trace()) fail("{}: a trace has no parameters", path);
  const Program& program = model.program;
  WeightsComparison comparison;
  comparison.model = path;
  comparison.tied = program.tied_names();
  Stored stored;
  for (const WeightsReport::Row& row : report.tensors) stored.emplace(row.name, &row);
  std::set<std::string> known;
  for (const ProgramInput& input : program.inputs) {
    if (input.value == kNoValue || input.kind == ProgramInput::Kind::user) continue;
    known.insert(input.name);
    if (input.kind != ProgramInput::Kind::parameter || input.tied_to >= 0) continue;
    std::vector<std::string> names{input.name};
    for (const auto& group : comparison.tied)
      if (std::ranges::find(group, input.name) != group.end()) names = group;
    compare_parameter(comparison, stored, sizes_of(program, input), names);
  }
  for (const auto& [name, row] : stored)
    if (!known.contains(name)) {
      comparison.unexpected.push_back(name);
      comparison.stored += row->elements;
    }
  return comparison;
}

std::vector<std::string> models_beside(const std::string& path) {
  std::error_code code;
  const std::filesystem::path folder = std::filesystem::is_directory(path, code)
                                           ? std::filesystem::path(path)
                                           : std::filesystem::path(path).parent_path();
  std::vector<std::string> models;
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, code))
    if (entry.path().filename() == "config.json" || entry.path().extension() == ".pt2")
      models.push_back(entry.path().string());
  std::ranges::sort(models);
  return models;
}

}  // namespace

WeightsReport inspect_weights(const std::string& path, const std::string& against) {
  WeightInventory inventory = read_weights(path);
  WeightsReport report;
  report.path = path;
  report.files = std::move(inventory.files);
  report.metadata = std::move(inventory.metadata);
  report.warnings = std::move(inventory.warnings);
  for (StoredTensor& tensor : inventory.tensors)
    report.tensors.push_back({std::move(tensor.name), std::move(tensor.dtype), std::move(tensor.shape),
                              tensor.elements, tensor.bytes, std::move(tensor.file)});
  if (!against.empty()) {
    report.comparisons.push_back(compared(report, against));
    return report;
  }
  for (const std::string& model : models_beside(path)) try {
      report.comparisons.push_back(compared(report, model));
    } catch (const Error& error) {
      report.warnings.push_back(fmt::format("not compared: {}", error.what()));
    }
  return report;
}

}  // namespace metaprof
