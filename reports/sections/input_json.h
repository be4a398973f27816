#pragma once
// The inputs of a run in JSON. Included only where JSON is written.

#include <nlohmann/json.hpp>

#include "estimate/results/input_row.h"

namespace metaprof {

/// [{"name": "input_ids", "dtype": "int64", "shape": [4, 512]}]
inline nlohmann::ordered_json inputs_json(const std::vector<InputRow>& inputs) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const InputRow& input : inputs) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (const int64_t size : input.sizes) shape.push_back(size);
    rows.push_back({{"name", input.name}, {"dtype", long_name(input.dtype)}, {"shape", shape}});
  }
  return rows;
}

}  // namespace metaprof
