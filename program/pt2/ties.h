#pragma once
// Tied parameters of a .pt2 program. Every name of a tied parameter has an input of its own, and the file
// does not say outright which are one: see the rules in pt2_ties.cpp.

#include <set>
#include <string>
#include <vector>

#include "core/formats/json.h"
#include "program/pt2/context.h"

namespace metaprof {

/// What an archive holds besides the program.
struct Pt2Weights {
  Json config;                     ///< "config" of NAME_weights_config.json; nothing if absent
  std::set<std::string> nonempty;  ///< the records of the archive that have bytes
  Json notes;                      ///< extra/training.json; nothing if absent
};

/// Fills Program::tied and ProgramInput::tied_to.
void find_ties(const Pt2Weights& weights, Pt2Context& context);

}  // namespace metaprof
