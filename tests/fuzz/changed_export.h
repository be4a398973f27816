#pragma once
// Real exports whose JSON was changed: kinds of arguments, sizes, dtypes, nodes, what is said of them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/random.h"

namespace metaprof {

/// What an archive holds; its graph as a tree.
struct ExportedArchive {
  std::vector<std::pair<std::string, std::string>> entries;  ///< all others
  std::string graph_name;
  std::shared_ptr<const nlohmann::json> graph;
};

/// Errors: as Archive; no graph.
ExportedArchive read_archive(const std::string& path);

/// The bytes of the archive after one to three changes.
std::string changed_export(const ExportedArchive& archive, Random& random);

}  // namespace metaprof
