# CUDA's headers and compiler, for backends/cuda. Libraries are loaded at run time and not looked for. They come from a CUDA
# toolkit, or from NVIDIA's packages of Python, which `tools/setup cuda` puts into build/cuda; METAPROF_CUDA names another
# folder with bin/nvcc and include/cuda.h, and METAPROF_CUDA=OFF builds without them.

set(METAPROF_HAVE_CUDA FALSE)
set(METAPROF_CUDA "" CACHE STRING "Folder of CUDA's compiler and headers; OFF: build without; empty: look for it")
if(METAPROF_CUDA STREQUAL "")
  find_package(CUDAToolkit QUIET)
  set(cuda_hints "${CUDAToolkit_BIN_DIR}/.." "${CMAKE_SOURCE_DIR}/build/cuda/nvidia/cu13")
elseif(METAPROF_CUDA)
  set(cuda_hints "${METAPROF_CUDA}")
endif()
if(cuda_hints)
  find_program(METAPROF_NVCC nvcc HINTS ${cuda_hints} PATH_SUFFIXES bin NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  find_path(METAPROF_CUDA_INCLUDE cuda.h HINTS ${cuda_hints} PATH_SUFFIXES include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(METAPROF_NVCC AND METAPROF_CUDA_INCLUDE AND EXISTS "${METAPROF_CUDA_INCLUDE}/cublas_v2.h")
    set(METAPROF_HAVE_CUDA TRUE)
    add_library(cuda::headers INTERFACE IMPORTED)
    target_include_directories(cuda::headers SYSTEM INTERFACE "${METAPROF_CUDA_INCLUDE}")
    target_compile_definitions(cuda::headers INTERFACE METAPROF_CUDA)
  endif()
endif()
if(NOT METAPROF_HAVE_CUDA)
  message(STATUS "nvcc, cuda.h or cublas_v2.h not found: backends/cuda, `metaprof replay` and `metaprof measure` are left out (tools/setup cuda)")
endif()

# metaprof_embed_ptx(target kernels.cu): compiles it to PTX of the oldest architecture that CUDA 13 has, which every driver
# compiles further for its device, and defines metaprof::cuda::kKernelsPtx.
function(metaprof_embed_ptx target source)
  set(ptx "${CMAKE_CURRENT_BINARY_DIR}/${source}.ptx")
  set(cpp "${CMAKE_CURRENT_BINARY_DIR}/${source}.ptx.cpp")
  add_custom_command(OUTPUT "${cpp}"
    COMMAND "${METAPROF_NVCC}" -ptx -arch=compute_75 -std=c++17 "-I${CMAKE_SOURCE_DIR}" -MD -MF "${ptx}.d" -MT "${cpp}"
      -o "${ptx}" "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
    COMMAND "${CMAKE_COMMAND}" "-DPTX=${ptx}" "-DCPP=${cpp}" -P "${CMAKE_SOURCE_DIR}/tools/cmake/EmbedPtx.cmake"
    DEPENDS "${source}" "${CMAKE_SOURCE_DIR}/tools/cmake/EmbedPtx.cmake" DEPFILE "${ptx}.d" VERBATIM)
  target_sources(${target} PRIVATE "${cpp}")
  set_source_files_properties("${cpp}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
