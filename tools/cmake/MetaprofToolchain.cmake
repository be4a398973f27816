# How every target is compiled and linked.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

# Assertions stay on in release: they are cheap, and the tests run this build.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_COVERAGE "-O0 -g --coverage")
set(CMAKE_EXE_LINKER_FLAGS_COVERAGE "--coverage")

# Parsing the standard library's and fmt's headers took half of the build's time; they are parsed once, into
# tools/cmake/precompiled.h's compiled form, which metaprof_core owns and every other target reads.
option(METAPROF_PRECOMPILE "Compile tools/cmake/precompiled.h once for all files" ON)
if(METAPROF_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # for ccache
endif()

option(METAPROF_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(METAPROF_SANITIZE_THREADS "Build with ThreadSanitizer" OFF)

# Warnings are errors with the compilers that continuous integration has: others warn of more, and a user's build is not to
# fail of that.
set(warnings -Wall -Wextra)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  list(APPEND warnings -Werror)
endif()
add_compile_options(${warnings} -fdiagnostics-color=auto)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 does not see that a small vector reads only the elements it has (SmallVector::inline_).
  add_compile_options(-Wno-maybe-uninitialized)
endif()
# No path of the build machine in binaries; also lets ccache share results between checkouts.
add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")

if(METAPROF_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all)
  add_compile_definitions(METAPROF_ADDRESS_SANITIZER)  # core/pool.h
  add_link_options(-fsanitize=address,undefined)
endif()
if(METAPROF_SANITIZE_THREADS)
  add_compile_options(-fsanitize=thread)
  add_link_options(-fsanitize=thread)
endif()

# Fuzz targets (tests/fuzz) and what they link, with clang, whose library feeds them.
option(METAPROF_FUZZ "Build the fuzz targets in place of the tests" OFF)
if(METAPROF_FUZZ)
  # Lines are all that a finding names: with more, compiling and linking take longer.
  add_compile_options(-fsanitize=fuzzer-no-link -gline-tables-only)
endif()

find_program(METAPROF_CCACHE ccache)
if(METAPROF_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_PCH_EXTSUM=1 ${CMAKE_SOURCE_DIR}/tools/cmake/compile)
endif()

find_program(METAPROF_MOLD mold)
find_program(METAPROF_LLD ld.lld)
if(METAPROF_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(METAPROF_LLD)
  add_link_options(-fuse-ld=lld)
endif()
