# What `cmake --install BUILD --component program` installs: bin/metaprof, what it finds beside itself in lib/metaprof, its
# manual page and completions. The target `program` builds all of it.

set(home "lib/metaprof")  # launch/installation.cpp and meta/platform/cudnn look here, from bin/..
install(TARGETS metaprof RUNTIME DESTINATION bin COMPONENT program)
install(TARGETS metaprof-cudnn-plans RUNTIME DESTINATION "${home}/cudnn" COMPONENT program)
install(TARGETS standin_driver LIBRARY DESTINATION "${home}/cudnn" COMPONENT program NAMELINK_SKIP)
install(DIRECTORY "${CMAKE_BINARY_DIR}/emulator/lib/" DESTINATION "${home}/emulator" COMPONENT program
  USE_SOURCE_PERMISSIONS)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/recorder/" DESTINATION "${home}/recorder" COMPONENT program
  PATTERN __pycache__ EXCLUDE PATTERN CMakeLists.txt EXCLUDE)

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
add_custom_target(program DEPENDS metaprof metaprof-cudnn-plans standin_driver emulator metaprof_texts)
