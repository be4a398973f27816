#pragma once
// The tensors that a model is called with.

#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace metaprof {

struct InputRow {
  std::string name;
  DType dtype;
  Sizes sizes;
};

/// "input_ids i64[4,512], labels i64[4,512]"; empty: there are none. Sizes that `others`, of other runs, have otherwise
/// are `varying`: "input_ids i64[batch,512]".
std::string inputs_text(const std::vector<InputRow>& inputs, const std::vector<InputRow>& others = {},
                        const std::string& varying = {});

}  // namespace metaprof
