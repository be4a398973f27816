#pragma once
// The results of calls, which driver and runtime number alike.

namespace metaprof::emulator {

enum Error : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_configuration = 9,
  invalid_symbol = 13,
  invalid_direction = 21,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  operating_system = 304,
  invalid_handle = 400,
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  not_permitted = 800,
  not_supported = 801,
  capture_unsupported = 900,
  capture_invalidated = 901,
  capture_merge = 902,
  capture_unmatched = 903,
  capture_unjoined = 904,
  capture_isolation = 905,
  capture_implicit = 906,
  captured_event = 907,
  capture_wrong_thread = 908,
};

/// "cudaErrorMemoryAllocation", as the runtime spells it; null for a number that is none.
const char* runtime_name(int error);
/// "CUDA_ERROR_OUT_OF_MEMORY", as the driver spells it; null for a number that is none.
const char* driver_name(int error);
/// "out of memory"; null for a number that is none.
const char* description(int error);

}  // namespace metaprof::emulator
