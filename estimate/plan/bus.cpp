#include "estimate/plan/bus.h"

namespace metaprof {
namespace {

constexpr double kLanes = 16, kDataBits = 128.0 / 130;

int64_t bytes_of(const Trace& trace, const TensorRecord& tensor) {
  int64_t elements = 1;
  for (const int64_t size : trace.shape(tensor)) elements *= size;
  return elements * element_size(tensor.dtype);
}

}  // namespace

double bus_bandwidth(const Hardware& hardware) {
  if (hardware.is_cpu()) return 0;
  const double transfers = hardware.sm >= 90 ? 32e9 : hardware.sm >= 80 ? 16e9 : 8e9;
  return transfers / 8 * kLanes * kDataBits;
}

Bytes saved_over_bus(const Trace& trace) {
  int64_t bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind == Event::Kind::phase && event.id > 0) break;  // the first step is enough
    if (event.kind != Event::Kind::call) continue;
    const CallRecord& call = trace.calls[event.id];
    const std::string_view op = trace.text(call.op);
    const bool into = op == "aten::copy_", anew = op == "aten::_to_copy";
    if (call.phase == Phase::setup || !(into || anew) || call.inputs + call.outputs < 2) continue;
    const TensorRecord* const tensors = &trace.tensors[call.first_tensor];  // both have the same sizes
    if (tensors[0].on_host != tensors[1].on_host) bytes += bytes_of(trace, tensors[1]);
  }
  return {bytes};
}

}  // namespace metaprof
