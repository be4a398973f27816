#include "profiler/storages/large_storage.h"

#include "profiler/storages/storage_tensors.h"

namespace metaprof {

StorageDescriber::StorageDescriber(const Trace& trace)
    : trace_(trace), tensors_(tensors_of_storages(trace)), parameters_(trace.storages.size()) {
  for (const ParameterRecord& parameter : trace.parameters) parameters_[parameter.storage] = &parameter;
}

LargeStorage StorageDescriber::describe(uint32_t id) const {
  const StorageRecord& storage = trace_.storages[id];
  LargeStorage large;
  large.storage = id;
  large.bytes = storage.bytes;
  large.category = storage.category;
  large.name = trace_.text(storage.name);
  large.module = trace_.text(storage.module);
  if (storage.call != 0) {
    large.op = trace_.text(trace_.calls[storage.call - 1].op);
    if (large.module.empty()) large.module = trace_.text(trace_.calls[storage.call - 1].module);
  }
  if (const TensorRecord* tensor = tensors_[id]) {
    const SizesView shape = trace_.shape(*tensor);
    large.shape = Sizes(shape.begin(), shape.end());
    large.dtype = tensor->dtype;
  }
  if (const ParameterRecord* parameter = parameters_[id]) {
    large.name = parameter->names.at(0);
    large.shape = parameter->sizes;
    large.dtype = parameter->dtype;
  }
  return large;
}

}  // namespace metaprof
