# Libraries of the distribution (tools/setup installs them: `run` for the program, `test` for the rest).

find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
set(ZLIB_USE_STATIC_LIBS ON)
find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  set(ZLIB_USE_STATIC_LIBS OFF)
  find_package(ZLIB REQUIRED)
endif()
find_package(Threads REQUIRED)

# Tests and benchmarks; without them the program alone is built. The distribution's Python sees the
# distribution's modules (jsonschema); another one in PATH does not.
find_package(GTest QUIET)
find_package(benchmark QUIET)
if(NOT Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python3 QUIET COMPONENTS Interpreter)
set(METAPROF_HAVE_TEST_LIBRARIES FALSE)
if(GTest_FOUND AND benchmark_FOUND AND Python3_FOUND)
  set(METAPROF_HAVE_TEST_LIBRARIES TRUE)
else()
  message(STATUS "GoogleTest, Google Benchmark or Python not found: tests and benchmarks are left out (tools/setup test)")
endif()

# minizip finds entries of archives, libdeflate inflates them, three times as fast as zlib. (libzip would bring OpenSSL,
# which costs a millisecond at every start.) Neither has a package file in Debian.
function(metaprof_library_without_package target header library)
  find_path(${library}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${library}_LIBRARY NAMES lib${library}.a ${library} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION "${${library}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${library}_INCLUDE_DIR}")
endfunction()
metaprof_library_without_package(minizip::minizip minizip/unzip.h minizip)
metaprof_library_without_package(libdeflate::deflate libdeflate.h deflate)
set_target_properties(minizip::minizip PROPERTIES INTERFACE_LINK_LIBRARIES ZLIB::ZLIB)

# Each shared library that a program names costs a quarter of a millisecond at its start: libraries that exist as archives
# are taken as those. The C++ runtime is, too, if nothing else brings the shared one; fmt would, whose archive Debian
# does not have.
include(CheckCXXSourceCompiles)
file(READ "${CMAKE_SOURCE_DIR}/tools/cmake/fmt_definitions.cpp" fmt_definitions)
if(NOT DEFINED METAPROF_STATIC_RUNTIME)  # the wheel's toolchain has its own (tools/wheel)
  set(METAPROF_STATIC_RUNTIME -static-libstdc++ -static-libgcc)
endif()
set(CMAKE_REQUIRED_LINK_OPTIONS ${METAPROF_STATIC_RUNTIME})
check_cxx_source_compiles("${fmt_definitions}
int main() { return fmt::format(\"{:.3f} {:L} {}\", 1.0, 2, \"three\").empty(); }" METAPROF_HAVE_STATIC_RUNTIME)
unset(CMAKE_REQUIRED_LINK_OPTIONS)

# The heap of programs (core/heap/heap.cpp). Sanitizers bring their own.
if(NOT METAPROF_SANITIZE AND NOT METAPROF_SANITIZE_THREADS)
  find_package(mimalloc 2 QUIET)
  if(TARGET mimalloc-static AND NOT TARGET mimalloc)  # which is how tools/wheel builds it; Debian has the shared one
    add_library(mimalloc ALIAS mimalloc-static)
  endif()
  if(NOT mimalloc_FOUND)
    message(STATUS "mimalloc not found: programs get the C library's heap, with which a run takes a tenth longer (tools/setup run)")
  endif()
endif()

# Large libraries that few runs need are loaded by those (core/dynamic_library.h): linked ones cost milliseconds at
# every start. What the program knows of them is the name that their loader looks for, "libgvc.so.6".
function(metaprof_loaded_library target include_directories)
  add_library(${target} INTERFACE IMPORTED)
  target_include_directories(${target} INTERFACE ${include_directories})
  while(ARGN)
    list(POP_FRONT ARGN definition library)
    file(REAL_PATH "${library}" real)
    string(REGEX MATCH "[^/]*\\.so\\.[0-9]+" name "${real}")
    target_compile_definitions(${target} INTERFACE "${definition}=\"${name}\"")
  endwhile()
endfunction()

find_path(GRAPHVIZ_INCLUDE_DIR graphviz/cgraph.h)
find_library(GRAPHVIZ_CGRAPH_LIBRARY cgraph)
find_library(GRAPHVIZ_GVC_LIBRARY gvc)
if(GRAPHVIZ_INCLUDE_DIR AND GRAPHVIZ_CGRAPH_LIBRARY AND GRAPHVIZ_GVC_LIBRARY)
  metaprof_loaded_library(graphviz::gvc "${GRAPHVIZ_INCLUDE_DIR};${GRAPHVIZ_INCLUDE_DIR}/graphviz"
    METAPROF_GRAPHVIZ_GRAPHS ${GRAPHVIZ_CGRAPH_LIBRARY} METAPROF_GRAPHVIZ ${GRAPHVIZ_GVC_LIBRARY})
endif()

# CBC solves the integer programmes of `metaprof plan --strategy operators`. Absent: the strategy says so.
find_path(CBC_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_library(CBC_SOLVER_LIBRARY CbcSolver)
if(CBC_INCLUDE_DIR AND CBC_SOLVER_LIBRARY)
  metaprof_loaded_library(cbc::cbc "${CBC_INCLUDE_DIR}" METAPROF_CBC ${CBC_SOLVER_LIBRARY})
endif()

# libtorch lends its CPU kernels to tests/libtorch. Its package file pulls in the whole of Caffe2's
# dependencies, so the libraries are named here. Absent: tests/libtorch and its tests are left out.
find_path(LIBTORCH_INCLUDE_DIR torch/library.h)
find_library(LIBTORCH_CPU_LIBRARY torch_cpu)
find_library(LIBTORCH_C10_LIBRARY c10)
if(LIBTORCH_INCLUDE_DIR AND LIBTORCH_CPU_LIBRARY AND LIBTORCH_C10_LIBRARY)
  set(METAPROF_HAVE_LIBTORCH TRUE)
  add_library(libtorch::cpu UNKNOWN IMPORTED)
  set_target_properties(libtorch::cpu PROPERTIES
    IMPORTED_LOCATION "${LIBTORCH_CPU_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${LIBTORCH_C10_LIBRARY};Threads::Threads"
    INTERFACE_INCLUDE_DIRECTORIES
      "${LIBTORCH_INCLUDE_DIR};${LIBTORCH_INCLUDE_DIR}/torch/csrc/api/include")
else()
  set(METAPROF_HAVE_LIBTORCH FALSE)
  message(STATUS "libtorch not found: tests/libtorch and the tests of numbers are left out (tools/setup installs it)")
endif()
