# For CMake: the compiler of this machine, with the headers and libraries of the folder in which this file lies (tools/wheel/sysroot
# makes the folder and copies this file there). A distribution's g++ looks into its own folders before those of --sysroot, so
# the sysroot's are named, too.

set(CMAKE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}")
set(triplet "${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu")
file(GLOB gcc_folder "${CMAKE_SYSROOT}/usr/lib/gcc/${triplet}/*")
cmake_path(GET gcc_folder FILENAME gcc_version)

set(CMAKE_C_COMPILER gcc-${gcc_version})
set(CMAKE_CXX_COMPILER g++-${gcc_version})
set(link_folders "-B${CMAKE_SYSROOT}/usr/lib/${triplet} -L${gcc_folder} -L${CMAKE_SYSROOT}/usr/lib/${triplet} -L${CMAKE_SYSROOT}/lib/${triplet}")
set(CMAKE_C_FLAGS_INIT "${link_folders} -ffile-prefix-map=${CMAKE_SYSROOT}=")
set(cxx_headers "${CMAKE_SYSROOT}/usr/include/c++/${gcc_version}")
set(CMAKE_CXX_FLAGS_INIT
  "${CMAKE_C_FLAGS_INIT} -nostdinc++ -isystem ${cxx_headers} -isystem ${CMAKE_SYSROOT}/usr/include/${triplet}/c++/${gcc_version} -isystem ${cxx_headers}/backward")
# Libraries of their own before glibc 2.34. Later ones keep their files, empty, for programs like this one.
set(CMAKE_CXX_STANDARD_LIBRARIES "-ldl -lpthread")

# Every distribution has libgcc_s.so.1. libgcc_eh.a, in its place, needs a function of glibc 2.35 (_dl_find_object).
set(METAPROF_STATIC_RUNTIME -static-libstdc++)

# The licenses of what is in the wheel go with it (tools/cmake/MetaprofInstall.cmake).
set(METAPROF_LICENSES "${CMAKE_SYSROOT}/licenses")

# Packages of the machine are not looked at; programs (ccache, mold, Python) are the machine's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE "${triplet}")
