# What `cmake --install BUILD` installs, in two parts. `program`: bin/metaprof, what it finds beside itself in lib/metaprof,
# its manual page and completions; the target `program` builds all of it. `development`: headers, libraries and
# find_package(metaprof), for models that are written in C++ (docs/how_to/nn.md). `cpack` makes a Debian package of each.

set(home "lib/metaprof")  # capture/launch/installation.cpp and meta/platform/cudnn look here, from bin/..
install(TARGETS metaprof RUNTIME DESTINATION bin COMPONENT program)
install(TARGETS metaprof-cudnn-plans RUNTIME DESTINATION "${home}/cudnn" COMPONENT program)
install(TARGETS standin_driver standin_cublaslt_12 standin_cublaslt_13 LIBRARY DESTINATION "${home}/cudnn" COMPONENT program
  NAMELINK_SKIP)
install(DIRECTORY "${CMAKE_BINARY_DIR}/emulator/lib/" DESTINATION "${home}/emulator" COMPONENT program
  USE_SOURCE_PERMISSIONS)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/capture/recorder/" DESTINATION "${home}/recorder" COMPONENT program
  PATTERN __pycache__ EXCLUDE PATTERN CMakeLists.txt EXCLUDE)
if(METAPROF_LICENSES)  # a wheel has libraries in itself (tools/wheel)
  install(DIRECTORY "${METAPROF_LICENSES}/" DESTINATION "${home}/licenses" COMPONENT program)
endif()
if(METAPROF_BILL_OF_MATERIALS)  # where PEP 770 says
  install(FILES "${METAPROF_BILL_OF_MATERIALS}" DESTINATION "${SKBUILD_METADATA_DIR}/sboms" COMPONENT program)
endif()
if(NOT SKBUILD)  # a wheel is the package
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/python/metaprof" DESTINATION "${home}/python" COMPONENT program PATTERN __pycache__ EXCLUDE)
endif()

# The program writes its own manual page and completions.
function(metaprof_text words file destination)
  separate_arguments(words)
  get_filename_component(name "${destination}/${file}" NAME)
  set(text "${CMAKE_BINARY_DIR}/texts/${destination}/${file}")
  get_filename_component(folder "${text}" DIRECTORY)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${text}" COMMAND metaprof ${words} > "${text}" DEPENDS metaprof VERBATIM)
  set_property(GLOBAL APPEND PROPERTY METAPROF_TEXTS "${text}")
  install(FILES "${text}" DESTINATION "${destination}" COMPONENT program)
endfunction()
metaprof_text("man" metaprof.1 share/man/man1)
metaprof_text("completion bash" metaprof share/bash-completion/completions)
metaprof_text("completion zsh" _metaprof share/zsh/vendor-completions)
metaprof_text("completion fish" metaprof.fish share/fish/vendor_completions.d)
get_property(texts GLOBAL PROPERTY METAPROF_TEXTS)
add_custom_target(metaprof_texts ALL DEPENDS ${texts})
add_custom_target(program DEPENDS metaprof metaprof-cudnn-plans standin_driver standin_cublaslt_12 standin_cublaslt_13 emulator metaprof_texts)

# Libraries name each other, some in circles: whoever links takes them as one group. Those of the command line, of
# numbers (libtorch) and of the heap are a program's own.
get_property(libraries GLOBAL PROPERTY METAPROF_LIBRARIES)
list(REMOVE_ITEM libraries metaprof_cli metaprof_tests_libtorch metaprof_core_heap)
install(TARGETS ${libraries} ARCHIVE DESTINATION "${home}/libraries" COMPONENT development)
list(TRANSFORM libraries PREPEND "lib")
list(TRANSFORM libraries APPEND ".a")
foreach(folder IN ITEMS core meta program step opcount profiler capture/launch validation estimate reports)
  get_filename_component(parent "${folder}" DIRECTORY)
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/${folder}" DESTINATION "include/metaprof/${parent}" COMPONENT development
    FILES_MATCHING PATTERN "*.h")
endforeach()
include(CMakePackageConfigHelpers)
configure_package_config_file(tools/cmake/metaprofConfig.cmake.in "${CMAKE_BINARY_DIR}/metaprofConfig.cmake"
  INSTALL_DESTINATION lib/cmake/metaprof)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/metaprofConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/metaprofConfig.cmake" "${CMAKE_BINARY_DIR}/metaprofConfigVersion.cmake"
  DESTINATION lib/cmake/metaprof COMPONENT development)

# `cpack --config build/release/CPackConfig.cmake`; needs dpkg-dev, which knows the packages of libraries.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME metaprof)
set(CPACK_PACKAGE_CONTACT "the developers of metaprof <metaprof@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "what a training step of a PyTorch model costs, before anyone runs it")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME metaprof)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/emulator/lib")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "graphviz, coinor-libcbc3, python3")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmetaprof-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, libminizip-dev, libdeflate-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
include(CPack)
