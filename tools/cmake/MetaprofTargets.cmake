# A folder is a library, and the link line of that library names every folder whose headers its files may
# include. tools/check_includes.py reads the same lines and compares them with the #include lines.
#
# In LINKS, a plain word is a folder of this project with `/` written as `_` (meta_core is meta/core); a
# word with `::` is a library of the distribution.

function(metaprof_link target)
  foreach(link IN LISTS ARGN)
    if(link MATCHES "::")
      target_link_libraries(${target} PUBLIC ${link})
    else()
      target_link_libraries(${target} PUBLIC metaprof_${link})
      set_property(GLOBAL APPEND PROPERTY METAPROF_LINKS "${target} ${link}")
    endif()
  endforeach()
endfunction()

# Targets that link nothing have no fmt either and compile without it.
function(metaprof_precompile target)
  if(NOT METAPROF_PRECOMPILE OR ARGC EQUAL 1)
    return()
  endif()
  if(target STREQUAL "metaprof_core")
    target_precompile_headers(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tools/cmake/precompiled.h")
  elseif(target STREQUAL "metaprof_meta_ops_rules")
    target_precompile_headers(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tools/cmake/precompiled_ops.h")
  elseif(target MATCHES "^metaprof_meta_ops_")
    target_precompile_headers(${target} REUSE_FROM metaprof_meta_ops_rules)
  else()
    target_precompile_headers(${target} REUSE_FROM metaprof_core)
  endif()
endfunction()

# metaprof_library(core LINKS fmt::fmt)
# The static library of the current folder: all its *.cpp except main.cpp.
function(metaprof_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINKS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "metaprof_library(${name}): unknown words '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE folder)
  string(REPLACE "/" "_" expected "${folder}")
  if(NOT name STREQUAL expected)
    message(FATAL_ERROR "metaprof_library(${name}) in ${folder}: the name must be ${expected}")
  endif()

  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(sources)
    add_library(metaprof_${name} STATIC ${sources})
  else()
    add_library(metaprof_${name} STATIC "${CMAKE_SOURCE_DIR}/tools/cmake/headers_only.cpp")
  endif()
  target_include_directories(metaprof_${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  metaprof_link(metaprof_${name} ${arg_LINKS})
  metaprof_precompile(metaprof_${name} ${arg_LINKS})
  set_property(GLOBAL APPEND PROPERTY METAPROF_LIBRARIES metaprof_${name})
endfunction()

# metaprof_embed_texts(target header struct name suffix files…): the files as text within the program, in the function that the
# header declares, const std::vector<struct>& name(). Of each file its name without the suffix, and its text.
function(metaprof_embed_texts target header struct name suffix)
  set(texts "#include \"${header}\"\n\nnamespace metaprof {\n\nconst std::vector<${struct}>& ${name}() {\n  static const std::vector<${struct}> texts{\n")
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    cmake_path(GET file FILENAME key)
    string(LENGTH "${key}" length)
    string(LENGTH "${suffix}" ending)
    math(EXPR length "${length} - ${ending}")
    string(SUBSTRING "${key}" 0 ${length} key)
    file(READ "${file}" text)
    string(APPEND texts "    {\"${key}\", R\"text(${text})text\"},\n")
  endforeach()
  string(APPEND texts "  };\n  return texts;\n}\n\n}  // namespace metaprof\n")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp" CONTENT "${texts}" @ONLY)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
endfunction()

# metaprof_program(metaprof main.cpp LINKS cli)
# Its addresses are fixed when it is linked: tables of operators and options point at functions, and at other addresses
# each start would correct them all, a millisecond.
function(metaprof_program name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LINKS")
  add_executable(${name} ${source})
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_link_options(${name} PRIVATE -no-pie)
  endif()
  metaprof_link(${name} ${arg_LINKS})
  metaprof_precompile(${name} ${arg_LINKS})
endfunction()

# A program that makes and drops many small objects gets mimalloc's heap, where there is one.
function(metaprof_with_heap target)
  if(mimalloc_FOUND)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:metaprof_core_heap>)  # which nothing refers to
    target_link_libraries(${target} PRIVATE mimalloc)
  endif()
endfunction()

# A program that is started often has the C++ runtime and fmt in itself (MetaprofPackages.cmake). libfmt.so, which is on
# its link line, is then left out as needless.
function(metaprof_with_own_runtime target)
  if(METAPROF_HAVE_STATIC_RUNTIME AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_sources(${target} PRIVATE "${CMAKE_SOURCE_DIR}/tools/cmake/fmt_definitions.cpp")
    target_link_options(${target} PRIVATE ${METAPROF_STATIC_RUNTIME} LINKER:--as-needed)
  endif()
endfunction()

# metaprof_test(core [SOURCES error_test.cpp ...] LINKS meta_core [ONE_PROCESS])
# One test program; without SOURCES, all *.cpp of the current folder. Tests run in the root of the
# checkout, so they name their data as "tests/data/...". Each GoogleTest case is a test of its own, or with
# ONE_PROCESS the program is (for libraries that are slow to load).
function(metaprof_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_PROCESS" "" "SOURCES;LINKS")
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS *.cpp)
  endif()
  set(target test_${name})
  add_executable(${target} ${arg_SOURCES})
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}")
  metaprof_link(${target} ${arg_LINKS} GTest::gtest_main)
  metaprof_precompile(${target} ${arg_LINKS})
  if(arg_ONE_PROCESS)
    add_test(NAME ${name} COMMAND ${target} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES TIMEOUT 300)
  else()
    gtest_discover_tests(${target} TEST_PREFIX "${name}." WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# metaprof_benchmark(dispatch SOURCES dispatch.cpp LINKS meta_op)
# A google-benchmark program; built with everything else, run by hand.
function(metaprof_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINKS")
  add_executable(bench_${name} ${arg_SOURCES})
  target_include_directories(bench_${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  metaprof_link(bench_${name} ${arg_LINKS} benchmark::benchmark_main)
  metaprof_precompile(bench_${name} ${arg_LINKS})
  metaprof_with_heap(bench_${name})
endfunction()

# A link to a folder that does not exist would only be noticed by the linker, as `-lmetaprof_...`.
function(metaprof_check_links)
  get_property(links GLOBAL PROPERTY METAPROF_LINKS)
  foreach(pair IN LISTS links)
    separate_arguments(pair)
    list(GET pair 0 from)
    list(GET pair 1 to)
    if(NOT TARGET metaprof_${to})
      message(FATAL_ERROR "${from} links '${to}', but no folder has metaprof_library(${to} ...)")
    endif()
  endforeach()
endfunction()

include(GoogleTest)
