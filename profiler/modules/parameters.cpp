#include "profiler/modules/parameters.h"

#include <set>

#include "meta/trace/module_path.h"

namespace metaprof {
namespace {

void add(TensorTotals& totals, int64_t elements, Bytes bytes) {
  totals.count += elements;
  totals.bytes += bytes;
  ++totals.tensors;
}

Bytes bytes_of(const ParameterRecord& record) {
  return {multiply(numel(record.sizes), element_size(record.dtype))};
}

}  // namespace

Bytes bytes_of_parameters(const Trace& trace) {
  Bytes bytes;
  for (const ParameterRecord& record : trace.parameters)
    if (!record.buffer) bytes += bytes_of(record);
  return bytes;
}

Parameters parameters_of(const Trace& trace) {
  Parameters parameters;
  for (const ParameterRecord& record : trace.parameters) {
    const int64_t elements = numel(record.sizes);
    const Bytes bytes = bytes_of(record);
    if (record.buffer) {
      add(parameters.buffers, elements, bytes);
      continue;
    }
    add(parameters.all, elements, bytes);
    if (record.requires_grad) add(parameters.trainable, elements, bytes);
    if (record.names.size() > 1) parameters.tied.push_back(record.names);
    std::set<std::string_view> modules;  // a module that has it under two names counts it once
    for (const std::string& name : record.names)
      for (const std::string_view path : enclosing_modules(parent_path(name))) modules.insert(path);
    for (const std::string_view path : modules) parameters.by_module[std::string(path)] += elements;
  }
  return parameters;
}

}  // namespace metaprof
