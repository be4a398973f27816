#pragma once
// Runs code in a session: every operator goes through the session's dispatcher, on whatever backend it has, and a
// value goes where it is used last.

#include "meta/session/call.h"
#include "step/compiled/executor/code.h"

namespace metaprof::ir {

/// Runs the code on one value per input of its graph, which it takes; returns its outputs. Errors are the
/// dispatcher's, and say which node of the graph was at work.
std::vector<metaprof::Value> run(const Code& code, Session& session, std::vector<metaprof::Value> inputs);

}  // namespace metaprof::ir
