// Contexts: that of each device, and green ones, which have a part of its multiprocessors. A green context shares all else
// with its device: what it cannot do at once it does later, which nobody sees here.

#include <algorithm>
#include <cstring>

#include "capture/emulator/driver/driver.h"
#include "capture/emulator/machine/memory/pools.h"
#include "capture/emulator/machine/owned.h"
#include "capture/emulator/machine/streams/streams.h"

namespace metaprof::emulator {

struct Context {
  int device = 0;
  int multiprocessors = 0;  ///< of a green context
};

namespace {

Context contexts[kMostDevices];

Owned<Context>& green_contexts() {
  static auto* const kContexts = new Owned<Context>;
  return *kContexts;
}

Context* green(Context* context) {
  const std::lock_guard lock(machine_mutex());
  return green_contexts().known(context);
}

}  // namespace

Context* context_of(int device) {
  contexts[device].device = device;
  return &contexts[device];
}

int device_of(Context* context) {
  if (context >= contexts && context < contexts + kMostDevices) return int(context - contexts);
  return green(context) ? context->device : -1;
}

}  // namespace metaprof::emulator

using namespace metaprof::emulator;

namespace {

// The thread's context where it is a green one, and what was current before each push.
thread_local Context* current_green = nullptr;
struct Pushed {
  int device;
  Context* green;
};
thread_local Pushed pushed[64];
thread_local int depth = 0;

Context* current_context() { return current_green ? current_green : context_of(current_device()); }

Error make_current(Context* context) {
  const int device = device_of(context);
  if (device < 0) return invalid_context;
  current_green = green(context);
  return set_current_device(device);
}

}  // namespace

METAPROF_DRIVER cuDevicePrimaryCtxRetain(Context** context, int device) {
  if (const Error error = enter_initialized()) return error;
  if (!is_device(device)) return invalid_device;
  activate(device);
  *context = context_of(device);
  return success;
}
METAPROF_DRIVER cuDevicePrimaryCtxRelease_v2(int device) {
  return is_device(device) ? success : invalid_device;
}
METAPROF_DRIVER cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  return is_device(device) ? success : invalid_device;
}
METAPROF_DRIVER cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (const Error error = enter_initialized()) return error;
  if (!is_device(device)) return invalid_device;
  *flags = 0;
  *active = is_active(device) ? 1 : 0;
  return success;
}
METAPROF_DRIVER cuCtxGetCurrent(Context** context) {
  if (const Error error = enter_initialized()) return error;
  *context = is_active(current_device()) ? current_context() : nullptr;
  return success;
}
METAPROF_DRIVER cuCtxSetCurrent(Context* context) {
  if (const Error error = enter_initialized()) return error;
  return context ? make_current(context) : success;
}
METAPROF_DRIVER cuCtxPushCurrent_v2(Context* context) {
  if (device_of(context) < 0 || depth == 64) return invalid_context;
  pushed[depth++] = {current_device(), current_green};
  return make_current(context);
}
METAPROF_DRIVER cuCtxPopCurrent_v2(Context** context) {
  if (context) *context = current_context();
  if (depth == 0) return invalid_context;
  const Pushed before = pushed[--depth];
  current_green = before.green;
  return set_current_device(before.device);
}
METAPROF_DRIVER cuCtxCreate_v2(Context** context, unsigned, int device) {
  if (const Error error = cuDevicePrimaryCtxRetain(context, device)) return error;
  return set_current_device(device);
}
METAPROF_DRIVER cuCtxDestroy_v2(Context*) { return success; }
METAPROF_DRIVER cuCtxGetDevice(int* device) {
  if (const Error error = enter_initialized()) return error;
  if (!is_active(current_device())) return invalid_context;
  *device = current_device();
  return success;
}
METAPROF_DRIVER cuCtxGetLimit(size_t* value, int) {
  *value = 0;
  return success;
}
METAPROF_DRIVER cuCtxSetLimit(int, size_t) { return success; }
METAPROF_DRIVER cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return success;
}
METAPROF_DRIVER cuCtxGetApiVersion(Context*, unsigned* version) {
  *version = 3020;
  return success;
}
METAPROF_DRIVER cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return success;
}
METAPROF_DRIVER cuCtxSynchronize() {
  if (const Error error = use_context()) return error;
  if (const Error error = wait_for_device(current_device())) return error;
  pools_wait(current_device());
  return success;
}
METAPROF_DRIVER cuCtxEnablePeerAccess(Context*, unsigned) { return success; }

namespace {

// CUdevResource: 144 bytes, of which a program reads the type and what follows 96 bytes behind it.
struct Resource {
  int type;
  unsigned char padding[92];
  unsigned multiprocessors, least, together, flags;
  unsigned char rest[32];
};
static_assert(sizeof(Resource) == 144);
constexpr int kMultiprocessors = 1;  // CU_DEV_RESOURCE_TYPE_SM

// How many multiprocessors belong together, by NVIDIA's documentation of cuDevSmResourceSplitByCount: the least partition
// and its steps.
struct Partition {
  unsigned least, together;
};
Partition partition() {
  const int sm = device_description().sm;
  return sm >= 90   ? Partition{8, 8}
         : sm >= 80 ? Partition{4, 2}
         : sm >= 70 ? Partition{2, 2}
                    : Partition{1, 1};
}

Error give_resource(Resource* out, int type, int multiprocessors) {
  if (!out || type != kMultiprocessors) return invalid_value;
  *out = {};
  const auto [least, together] = partition();
  out->type = kMultiprocessors;
  out->multiprocessors = unsigned(multiprocessors);
  out->least = least;
  out->together = together;
  return success;
}

}  // namespace

METAPROF_DRIVER cuDeviceGetDevResource(int device, Resource* out, int type) {
  if (const Error error = enter_initialized()) return error;
  if (!is_device(device)) return invalid_device;
  return give_resource(out, type, device_description().multiprocessors);
}
METAPROF_DRIVER cuCtxGetDevResource(Context* context, Resource* out, int type) {
  if (device_of(context) < 0) return invalid_context;
  const Context* const found = green(context);
  return give_resource(out, type, found ? found->multiprocessors : device_description().multiprocessors);
}
METAPROF_DRIVER cuGreenCtxGetDevResource(Context* context, Resource* out, int type) {
  return green(context) ? give_resource(out, type, context->multiprocessors) : invalid_context;
}
// Groups of `least` multiprocessors, rounded up to what belongs together; what is left over is `remaining`.
METAPROF_DRIVER cuDevSmResourceSplitByCount(Resource* groups, unsigned* count, const Resource* input,
                                            Resource* remaining, unsigned, unsigned least) {
  if (!count || !input || input->type != kMultiprocessors) return invalid_value;
  const auto [smallest, together] = partition();
  const unsigned size = (std::max(least, smallest) + together - 1) / together * together;
  if (size > input->multiprocessors) return invalid_value;
  const unsigned possible = input->multiprocessors / size,
                 made = groups ? std::min(*count, possible) : possible;
  *count = made;
  if (!groups) return success;
  for (unsigned i = 0; i < made; ++i) give_resource(&groups[i], kMultiprocessors, int(size));
  return remaining ? give_resource(remaining, kMultiprocessors, int(input->multiprocessors - made * size))
                   : success;
}
// A descriptor is the number of the multiprocessors.
METAPROF_DRIVER cuDevResourceGenerateDesc(uintptr_t* out, const Resource* resources, unsigned count) {
  if (!out || !resources || count == 0) return invalid_value;
  *out = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type != kMultiprocessors) return invalid_value;
    *out += resources[i].multiprocessors;
  }
  return success;
}
METAPROF_DRIVER cuGreenCtxCreate(Context** out, uintptr_t descriptor, int device, unsigned) {
  if (const Error error = enter_initialized()) return error;
  if (!is_device(device)) return invalid_device;
  if (descriptor == 0 || descriptor > uintptr_t(device_description().multiprocessors)) return invalid_value;
  activate(device);
  const std::lock_guard lock(machine_mutex());
  *out = green_contexts().adopt(std::make_unique<Context>(Context{device, int(descriptor)}));
  return success;
}
METAPROF_DRIVER cuGreenCtxDestroy(Context* context) {
  const std::lock_guard lock(machine_mutex());
  return green_contexts().erase(context) ? success : invalid_context;
}
METAPROF_DRIVER cuCtxFromGreenCtx(Context** out, Context* context) {
  *out = green(context);
  return *out ? success : invalid_context;
}
METAPROF_DRIVER cuGreenCtxStreamCreate(Stream** out, Context* context, unsigned flags, int priority) {
  if (!green(context)) return invalid_context;
  const int before = current_device();
  set_current_device(context->device);
  const Error error = make_stream(out, flags, priority);
  set_current_device(before);
  return error;
}
// Events of a context are those of the device's legacy stream.
METAPROF_DRIVER cuGreenCtxRecordEvent(Context* context, Event* event) {
  return green(context) ? record_event(event, nullptr) : invalid_context;
}
METAPROF_DRIVER cuGreenCtxWaitEvent(Context* context, Event* event) {
  return green(context) ? stream_waits_for_event(nullptr, event) : invalid_context;
}
