"""Variables of the environment that decide memory, as far as they are set."""
import os

JOB = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
# What metaprof's --env knows: the sizes of libraries' workspaces and who shares them, implementations that are turned off,
# the allocator's settings.
MEMORY = ("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE", "TORCH_CUBLAS_WORKSPACE_CACHE",
          "TORCH_DISABLE_NATIVE_JIT", "TORCH_DISABLE_NATIVE_AOT", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def values_of(names):
    return {name: os.environ[name] for name in names if name in os.environ}
