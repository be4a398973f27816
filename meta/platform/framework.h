#pragma once
// A version of PyTorch as what it does differently from others: named behaviours that kernels and the engine
// ask. Nobody else compares versions.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meta/allocator/free_block_order.h"

namespace metaprof {

struct FrameworkVersion {
  int major = 2, minor = 11, patch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): in what is generated
  friend constexpr auto operator<=>(FrameworkVersion, FrameworkVersion) = default;
};

/// The oldest and the newest version whose behaviours are known.
inline constexpr FrameworkVersion kOldestFramework = {.major = 2, .minor = 6, .patch = 0};
inline constexpr FrameworkVersion kNewestFramework = {.major = 2, .minor = 15, .patch = 0};

/// The versions that have something: from `since` on, until the one before `before`.
struct FrameworkRange {
  FrameworkVersion since = {.major = 0, .minor = 0, .patch = 0};
  FrameworkVersion before = {.major = 1'000, .minor = 0, .patch = 0};

  constexpr bool holds(FrameworkVersion version) const { return since <= version && version < before; }
};

/// "2.11", "2.11.0", "2.11.0+cu130", "2.12.0a0+git1234": what stands behind the numbers is passed over. Nothing:
/// it is anything else.
std::optional<FrameworkVersion> read_framework_version(std::string_view text);
/// Errors: it is no version, or one before the oldest that is known.
FrameworkVersion parse_framework_version(std::string_view text);
/// "2.11.0"
std::string to_string(FrameworkVersion version);

/// Whose memory cuBLASLt works in (aten/src/ATen/cuda/CUDABlas.cpp, getCUDABlasLtWorkspaceSize and its callers).
enum class CublasLtWorkspace : uint8_t {
  per_call_around_cublas,  ///< its own for the call; within it cuBLAS's is taken, too
  kept,                ///< cuBLAS's, then its own; both per handle and stream, for the rest of the process
  shared_with_cublas,  ///< that of the cuBLAS handle
  per_call,            ///< its own for the call; cuBLAS is not asked for any
};

/// What it does, as 2.11 does it. The comments say which versions do otherwise, and where that is written; each
/// difference was seen in recordings of both sides.
struct Framework {
  FrameworkVersion version;

  /// A cuBLAS handle keeps one workspace per stream; else every call takes one and gives it back
  /// (aten/src/ATen/cuda/CublasHandlePool.cpp; until 2.14).
  bool keeps_cublas_workspaces = true;
  /// cuBLAS's larger workspace is for compute capability 9.0 alone; else for all of 9, 10, 11 and 12
  /// (CublasHandlePool.cpp, parseChosenWorkspaceSize; until 2.14).
  bool large_cublas_workspace_on_sm90_only = true;
  /// TORCH_CUBLAS_WORKSPACE_CACHE=1 has workspaces kept (CublasHandlePool.cpp, isCUDABlasWorkspaceCachingEnabled; from
  /// 2.15 on).
  bool asks_whether_to_keep_workspaces = false;
  /// Per call around cuBLAS's until 2.8, kept from 2.9 on, shared from 2.12 on, per call from 2.15 on
  /// (CUDABlas.cpp; TORCH_CUBLASLT_UNIFIED_WORKSPACE).
  CublasLtWorkspace cublas_lt_workspace = CublasLtWorkspace::kept;
  /// TORCH_CUBLASLT_UNIFIED_WORKSPACE says whether cuBLASLt works in cuBLAS's workspace, where that is kept
  /// (CUDABlas.cpp, getCUDABlasLtWorkspace; from 2.8 on).
  bool asks_whether_to_share_workspaces = true;
  /// cuBLASLt's own memory is not larger than cuBLAS's (CUDABlas.cpp; recorded: gpt2 with
  /// CUBLAS_WORKSPACE_CONFIG=:16:8; from 2.11 on).
  bool limits_cublas_lt_workspace = true;
  /// bmm of columns and rows is a kernel of the framework's own, without a workspace
  /// (torch/_native/ops/bmm_outer_product; from 2.13 on).
  bool has_kernel_for_outer_products = false;
  /// Python's `x[:, 0]` slices all of the first dimension; else what takes everything is passed over
  /// (aten/src/ATen/TensorIndexing.h, applySlice; until 2.8).
  bool slices_whole_dimensions = false;
  /// cuDNN's attention is taken with any probability of dropout; else only with sixteenths
  /// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp; until 2.11).
  bool cudnn_attention_takes_any_dropout = true;
  /// Kernels over elements of 16 bits load eight of them at once on compute capability 9 and 10, else four
  /// (aten/src/ATen/native/cuda/CUDALoops.cuh, pull request 145746; from 2.7 on: 2.6 and 2.8 were looked at).
  bool loads_sixteen_bytes = true;
  /// Flash attention's random state is on the device; else its seed and offset are on the host
  /// (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp; from 2.7 on).
  bool flash_random_state_on_device = true;
  /// Efficient attention without dropout makes its seed and offset on the device, zeroed
  /// (aten/src/ATen/native/transformers/cuda/attention.cu; from 2.14 on).
  bool zeroes_seed_of_efficient_attention = false;
  /// Efficient attention takes keys and values of fewer heads as they are; else operator by operator
  /// (attention.cu, sdp_utils.cpp; from 2.14 on).
  bool efficient_attention_takes_groups = false;
  /// A table's gradient sorts indices by as many bits as the number of rows has, not by all
  /// (aten/src/ATen/native/cuda/Embedding.cu; from 2.13 on).
  bool sorts_rows_by_needed_bits = false;
  /// Layer norm's parameter gradients of many rows are summed in two steps
  /// (aten/src/ATen/native/cuda/layer_norm_kernel.cu; from 2.8 on).
  bool sums_layer_norm_in_parts = true;
  /// Group norm of 16-bit inputs has its statistics in fp32 besides
  /// (aten/src/ATen/native/cuda/group_norm_kernel.cu; from 2.13 on).
  bool casts_group_norm_statistics = false;
  /// Norms of a list: partial results lie one behind the other, with a table of where each tensor's begin; else
  /// every tensor has as many as the longest (aten/src/ATen/native/cuda/ForeachReduceOp.cu; from 2.15 on).
  bool packs_partial_norms = false;
  /// The allocator's settings are read from PYTORCH_ALLOC_CONF; else from PYTORCH_CUDA_ALLOC_CONF alone
  /// (c10/core/AllocatorConfig.cpp; from 2.10 on).
  bool reads_alloc_conf = true;
  /// Where gradients of several streams meet, they do on a stream that the first of them decides, which waits for each
  /// that comes; else for every gradient there is one of five cases (torch/csrc/autograd/input_buffer.cpp; from 2.8
  /// on).
  bool first_gradient_decides_stream = true;
  /// Each captured graph has random numbers' seed and offset of its own, which the first operator in it that draws some
  /// makes on the default stream; else all share those that the first capture makes on its stream
  /// (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp; recorded with 2.15 and 2.11; what lies between is taken to be as 2.11).
  bool makes_graph_seed_on_first_use = false;
  /// make_graphed_callables captures on the stream of its steps to warm up, else on the one that all captures share
  /// (torch/cuda/graphs.py; from 2.15 on, as far as is known).
  bool captures_callables_on_warm_stream = false;
  /// The compiler goes on behind the call of a recurrent network, within the function that makes it; else that function
  /// is left to Python as a whole (torch/_dynamo/variables/builder.py; recorded with 2.15 and 2.11; what lies between is
  /// taken to be as 2.11).
  bool compiles_around_recurrent_networks = false;
  /// The compiler takes a number that is assigned to a part of a tensor for a number, else for a tensor on the host
  /// (recorded with 2.15 and 2.11; what lies between is taken to be as 2.11, here and below).
  bool traces_assigned_numbers = false;
  /// Compiled dropout that drops nothing gives its input, else a copy (torch/_decomp/decompositions.py).
  bool compiled_dropout_gives_input = false;
  /// A compiled backward lets go of each gradient behind its last use, else who calls it holds them all
  /// (`boxed_grads_call`, torch/autograd/function.py).
  bool compiled_backward_takes_gradients = false;
  /// c10/cuda/CUDACachingAllocator.cpp: by address until 2.11, by block record in 2.12, by segment from 2.13 on.
  FreeBlockOrder free_block_order = FreeBlockOrder::address;
};

/// How this version behaves. A version that is newer than all that are known behaves as the newest of these.
Framework framework_of(FrameworkVersion version);

}  // namespace metaprof
