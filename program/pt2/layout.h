#pragma once
// Where in an archive the parts of a program are.
//
//   ROOT/models/NAME.json                          the program
//   ROOT/data/weights/NAME_weights_config.json     its parameters and persistent buffers
//   ROOT/data/weights/weight_0 …                   their bytes (empty if the export had no weights)
//   ROOT/extra/training.json                       notes of the exporter
//
// ROOT is the archive's name when it was written, and may be missing. Before PyTorch 2.7 the program was
// serialized_exported_program.json.

#include <set>
#include <string>

#include "core/formats/archive.h"

namespace metaprof {

struct Pt2Layout {
  const Archive::Entry* program = nullptr;
  const Archive::Entry* weights_config = nullptr;  ///< nullptr: absent
  const Archive::Entry* notes = nullptr;           ///< nullptr: absent
  std::string name;                                ///< "model"
  bool is_one_of_several = false;
  std::set<std::string> nonempty_weights;  ///< "weight_0" …: records with bytes
};

/// `wanted` names a program of an archive that holds several; empty: the only one. Errors: no program, a
/// compiled package, several and none or an unknown one named (all are listed), two of one name.
Pt2Layout find_layout(const Archive& archive, const std::string& wanted);

}  // namespace metaprof
