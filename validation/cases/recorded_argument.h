#pragma once

#include <functional>

#include "meta/op/schema.h"
#include "validation/recordings/recorded_value.h"

namespace metaprof {

/// What an operator takes for a value that was written down: a list becomes what its argument is a list of, "cuda" is
/// the device of the run. `tensor` gives the tensor for each that is named. Errors: nothing that an operator takes.
Value recorded_argument(const Argument& argument, const RecordedValue& value, Device device,
                        const std::function<Tensor(const RecordedTensor&)>& tensor);

}  // namespace metaprof
