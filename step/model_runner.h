#pragma once
// How a step runs its model, where the interpreter of programs does not.

#include <functional>
#include <vector>

#include "meta/session/session.h"
#include "meta/tensor/value.h"
#include "program/program.h"

namespace metaprof {

/// Runs the model on its inputs, which are paired with the program's, and returns its outputs.
using ModelRunner = std::function<std::vector<Value>(Session& session, const std::vector<Value>& inputs)>;
/// Makes one for a program, as the framework's version indexes it; the program outlives the runner.
using MakeModelRunner = std::function<ModelRunner(const Program& program)>;

}  // namespace metaprof
