#include "core/dynamic_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace metaprof {

DynamicLibrary::DynamicLibrary(const std::string& file, const std::string& advice)
    : file_(file), handle_(dlopen(file.c_str(), RTLD_NOW)) {
  if (!handle_) fail("{}{}{}", dlerror(), advice.empty() ? "" : ": ", advice);
}

void* DynamicLibrary::symbol(const char* name) const {
  void* found = dlsym(handle_, name);
  if (!found) fail("{} has no function {}", file_, name);
  return found;
}

}  // namespace metaprof
