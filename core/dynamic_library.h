#pragma once
// A library that is loaded when somebody first needs it: a program that links it would pay for it at every start.

#include <string>

namespace metaprof {

/// Stays loaded for the rest of the process, as libraries with state of their own expect.
class DynamicLibrary {
 public:
  /// `file`: a name that the system's loader finds, or a path. Error: it cannot be loaded; the message is the
  /// loader's, and after it `advice`: what to do.
  explicit DynamicLibrary(const std::string& file, const std::string& advice = {});

  /// Function: its type, as the library's header declares it. Error: the library has none of this name.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string file_;
  void* handle_;
};

}  // namespace metaprof
