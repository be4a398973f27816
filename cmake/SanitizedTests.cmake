# Quick tests that share most of their libraries with the parsers, so that one build with clang and the sanitizers serves
# both: tests/sanitized runs them. Each file by itself, as in the other presets.
if(METAPROF_HAVE_TEST_LIBRARIES)
  set(CMAKE_UNITY_BUILD OFF)
  foreach(folder IN ITEMS core formats trace platform program opcount profiler)
    add_subdirectory(tests/${folder})
  endforeach()
endif()
