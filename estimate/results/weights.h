#pragma once
// What files of weights hold, and whether it is what a model has.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace metaprof {

/// How weights and a model go together.
struct WeightsComparison {
  std::string model;       ///< its file or folder
  int64_t parameters = 0;  ///< elements of the model; those of several names once
  int64_t stored = 0;  ///< elements of the files, without second names of one parameter and without buffers
  std::vector<std::string> missing;     ///< parameters that no file has under their name
  std::vector<std::string> unexpected;  ///< tensors that the model does not have under that name
  std::vector<std::string> shapes;      ///< "name: [2,3] in the file, [2,4] in the model"
  std::vector<std::vector<std::string>>
      tied;  ///< names of one parameter; which of them are stored does not matter
  bool agrees() const { return parameters == stored && shapes.empty(); }
};

struct WeightsReport {
  struct Row {
    std::string name, dtype;  ///< dtype as the format spells it
    Sizes shape;
    int64_t elements = 0, bytes = 0;
    std::string file;
  };
  struct Sum {
    int64_t tensors = 0, elements = 0, bytes = 0;
  };
  std::string path;
  std::vector<std::string> files;
  std::vector<Row> tensors;  ///< by name
  std::map<std::string, std::string> metadata;
  std::vector<std::string> warnings;
  std::vector<WeightsComparison> comparisons;

  Sum all() const;
  std::map<std::string, Sum> by_dtype() const;
};

}  // namespace metaprof
