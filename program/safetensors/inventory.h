#pragma once
// Which tensors a file of weights has: the header of a `.safetensors` file, or of all that an index names. Weights
// themselves are never read.
//
// Format: eight bytes, little endian, say how long the header is; the header is a JSON object of names, each with
// dtype, shape and data_offsets into what follows (huggingface/safetensors, README.md).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace metaprof {

struct StoredTensor {
  std::string name, dtype;  ///< dtype as the format spells it: BF16, F8_E4M3 …
  Sizes shape;
  int64_t elements = 0, bytes = 0;
  std::string file;  ///< without its folder
};

struct WeightInventory {
  std::vector<StoredTensor> tensors;  ///< by name
  std::map<std::string, std::string> metadata;
  std::vector<std::string> files;     ///< in the order in which they are read
  std::vector<std::string> warnings;  ///< one line each: data is missing or truncated, sizes do not add up

  int64_t elements() const;
  int64_t bytes() const;
};

/// True if the path is a `.safetensors` file or an index of several.
bool is_weights_path(const std::string& path);

/// `path`: a file, an index (*.safetensors.index.json), or a folder with one of them. Errors: no such file; a
/// header that is too short, too long or no JSON; an unknown dtype; a shape that does not give the bytes;
/// offsets that are reversed, overlap or leave holes; an index that names a tensor that its file lacks.
WeightInventory read_weights(const std::string& path);

}  // namespace metaprof
