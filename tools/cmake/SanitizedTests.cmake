# Tests that run as well with clang and the sanitizers, in the build that the parsers' fuzz programs have: tests/sanitized
# runs them. Each file by itself, as in the other presets. Left out: what needs libtorch, whose memory the sanitizers do not
# know, and what tests other programs than these libraries.
if(METAPROF_HAVE_TEST_LIBRARIES)
  set(CMAKE_UNITY_BUILD OFF)
  foreach(folder IN ITEMS allocator autograd cases configs core estimate evidence formats frontend graph graph_passes nn opcount
      ops planner platform profiler program reports step trace weights)
    add_subdirectory(tests/${folder})
  endforeach()
endif()
