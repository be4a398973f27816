#pragma once
// cudaDeviceProp as CUDA 12 (cudaGetDeviceProperties_v2) and CUDA 13 lay it out.

#include <cstddef>

namespace metaprof::emulator {

// A field that CUDA 13 dropped.
#if METAPROF_CUDA_MAJOR == 12
#define METAPROF_ONLY_12(declaration) declaration;
#else
#define METAPROF_ONLY_12(declaration)
#endif

struct DeviceProperties {
  char name[256];
  unsigned char uuid[16];
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_memory, shared_memory_per_block;
  int registers_per_block, warp_size;
  size_t memory_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3];
  METAPROF_ONLY_12(int clock_rate)
  size_t total_constant_memory;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  METAPROF_ONLY_12(int device_overlap)
  int multiprocessor_count;
  METAPROF_ONLY_12(int kernel_timeout_enabled)
  int integrated, can_map_host_memory;
  METAPROF_ONLY_12(int compute_mode)
  int textures_1d[2];
  METAPROF_ONLY_12(int texture_1d_linear)
  int textures_and_surfaces[37];
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus, pci_device, pci_domain, tcc_driver, copy_engines,
      unified_addressing;
  METAPROF_ONLY_12(int memory_clock_rate)
  int memory_bus_width, l2_cache_size, persisting_l2_cache_max_size, max_threads_per_multiprocessor;
  int stream_priorities_supported, global_l1_cache_supported, local_l1_cache_supported;
  size_t shared_memory_per_multiprocessor;
  int registers_per_multiprocessor, managed_memory, multi_gpu_board, multi_gpu_board_group,
      host_native_atomics;
  METAPROF_ONLY_12(int single_to_double_ratio)
  int pageable_memory_access, concurrent_managed_access, compute_preemption, registered_host_pointers;
  int cooperative_launch;
  METAPROF_ONLY_12(int cooperative_multi_device_launch)
  size_t shared_memory_per_block_optin;
  int pageable_memory_uses_host_page_tables, direct_managed_access_from_host, max_blocks_per_multiprocessor;
  int access_policy_max_window;
  size_t reserved_shared_memory_per_block;
  int host_register_supported, sparse_arrays, read_only_host_register, timeline_semaphores,
      memory_pools_supported;
  int gpu_direct_rdma;
  unsigned rdma_flush_options;
  int rdma_writes_ordering;
  unsigned pool_handle_types;
  int deferred_mapping_arrays, ipc_events, cluster_launch, unified_function_pointers;
  int reserved[63];
};

#undef METAPROF_ONLY_12

// As compilers lay out NVIDIA's declarations.
#if METAPROF_CUDA_MAJOR == 12
static_assert(sizeof(DeviceProperties) == 1032 && offsetof(DeviceProperties, l2_cache_size) == 616);
static_assert(offsetof(DeviceProperties, shared_memory_per_block_optin) == 696);
static_assert(offsetof(DeviceProperties, unified_function_pointers) == 776);
#else
static_assert(sizeof(DeviceProperties) == 1008 && offsetof(DeviceProperties, l2_cache_size) == 596);
static_assert(offsetof(DeviceProperties, shared_memory_per_block_optin) == 672);
static_assert(offsetof(DeviceProperties, unified_function_pointers) == 752);
#endif

}  // namespace metaprof::emulator
