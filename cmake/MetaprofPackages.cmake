# Libraries of the distribution (tools/setup installs them: `run` for the program, `test` for the rest).

find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(ZLIB REQUIRED)
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

# libzip's own package file wants its command line tools, which nothing here uses.
find_path(LIBZIP_INCLUDE_DIR zip.h REQUIRED)
find_library(LIBZIP_LIBRARY zip REQUIRED)
add_library(libzip::zip UNKNOWN IMPORTED)
set_target_properties(libzip::zip PROPERTIES
  IMPORTED_LOCATION "${LIBZIP_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${LIBZIP_INCLUDE_DIR}")

find_path(GRAPHVIZ_INCLUDE_DIR graphviz/cgraph.h)
find_library(GRAPHVIZ_CGRAPH_LIBRARY cgraph)
find_library(GRAPHVIZ_GVC_LIBRARY gvc)
set(METAPROF_HAVE_GRAPHVIZ FALSE)
if(GRAPHVIZ_INCLUDE_DIR AND GRAPHVIZ_CGRAPH_LIBRARY AND GRAPHVIZ_GVC_LIBRARY)
  set(METAPROF_HAVE_GRAPHVIZ TRUE)
  add_library(graphviz::cgraph UNKNOWN IMPORTED)
  set_target_properties(graphviz::cgraph PROPERTIES
    IMPORTED_LOCATION "${GRAPHVIZ_CGRAPH_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${GRAPHVIZ_GVC_LIBRARY}"
    INTERFACE_COMPILE_DEFINITIONS METAPROF_HAVE_GRAPHVIZ
    INTERFACE_INCLUDE_DIRECTORIES "${GRAPHVIZ_INCLUDE_DIR};${GRAPHVIZ_INCLUDE_DIR}/graphviz")
endif()

# CBC solves the integer programmes of `metaprof plan --strategy operators`. Absent: the strategy says so.
find_path(CBC_INCLUDE_DIR coin/Cbc_C_Interface.h)
find_library(CBC_SOLVER_LIBRARY CbcSolver)
find_library(CBC_LIBRARY Cbc)
set(METAPROF_HAVE_CBC FALSE)
if(CBC_INCLUDE_DIR AND CBC_SOLVER_LIBRARY AND CBC_LIBRARY)
  set(METAPROF_HAVE_CBC TRUE)
  add_library(cbc::cbc UNKNOWN IMPORTED)
  set_target_properties(cbc::cbc PROPERTIES
    IMPORTED_LOCATION "${CBC_SOLVER_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${CBC_LIBRARY}"
    INTERFACE_COMPILE_DEFINITIONS METAPROF_HAVE_CBC
    INTERFACE_INCLUDE_DIRECTORIES "${CBC_INCLUDE_DIR}")
endif()

# libtorch lends its CPU kernels to backends/cpu. Its package file pulls in the whole of Caffe2's
# dependencies, so the libraries are named here. Absent: backends/cpu and its tests are left out.
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
  message(STATUS "libtorch not found: backends/cpu and the tests of numbers are left out (tools/setup installs it)")
endif()
