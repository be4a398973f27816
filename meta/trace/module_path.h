#pragma once
// Paths of modules: "model.layer1.0". The root's path is empty.

#include <string_view>

#include "core/small_vector.h"

namespace metaprof {

/// The path without its last segment; the root's for a path of one segment. Of a parameter's name: its
/// module.
inline std::string_view parent_path(std::string_view path) {
  const size_t dot = path.rfind('.');
  return path.substr(0, dot == path.npos ? 0 : dot);
}

/// Segments of a path; 0 for the root.
inline int path_depth(std::string_view path) {
  int depth = path.empty() ? 0 : 1;
  for (const char c : path) depth += c == '.';
  return depth;
}

/// A module and those around it, the innermost first, the root last.
inline SmallVector<std::string_view, 12> enclosing_modules(std::string_view path) {
  SmallVector<std::string_view, 12> paths;
  for (; !path.empty(); path = parent_path(path)) paths.push_back(path);
  paths.push_back("");
  return paths;
}

}  // namespace metaprof
