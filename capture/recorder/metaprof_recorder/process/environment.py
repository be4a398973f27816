"""Variables of the environment that decide memory, as far as they are set."""
import os

JOB = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
# What metaprof's --env knows: the sizes of libraries' workspaces and who shares them, implementations that are turned off,
# the allocator's settings.
MEMORY = ("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_CUBLASLT_UNIFIED_WORKSPACE", "TORCH_CUBLAS_WORKSPACE_CACHE",
          "TORCH_DISABLE_NATIVE_JIT", "TORCH_DISABLE_NATIVE_AOT", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")

_made = {}  # settings of the allocator that the program has made by a function


def allocator_settings(settings):
    """What the allocator says of its settings, a member of its snapshot. The text that it was given last takes the place of the one in the
    environment. Of what that text does not say only expandable segments stay as they were (AcceleratorAllocatorConfig::parseArgs)."""
    text = settings.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    if not text or text in (os.environ.get(name) for name in ALLOCATOR):
        return
    if settings.get("expandable_segments") and "expandable_segments" not in text:
        text += ",expandable_segments:True"
    _made.update(dict.fromkeys(ALLOCATOR, text))


def values_of(names):
    return {name: _made.get(name, os.environ.get(name)) for name in names if name in os.environ or name in _made}
