#pragma once
// What the Python text in an export says of its program: torch.export writes down calls and results, and for
// every call the lines of the model's source that made it. Everything else that decides memory is read from
// those lines once, and is part of the program from then on.

#include "meta/op/registry.h"
#include "program/program.h"

namespace metaprof {

/// Leaves out what a library calls only where it is traced (traced_masks.h), and keeps the program as it was exported
/// beside (Program::traced). Fills in, for the graph and those inside it:
///  - copies that the exporter's tensors did not need (elided_copies.h);
///  - which tensors are made on the host (host_constants.h);
///  - which of two tensors a call takes, where a conversion between them did nothing while exporting
///    (conversions.h);
///  - dtypes that follow a tensor or the model's precision, and calls where autocast is off (dtypes.h);
///  - when values are dropped (lifetimes.h);
///  - sizes that follow from data, where a router spreads it (even_shares.h).
void read_source(Program& program, const Registry& registry, bool exported_on_host);

}  // namespace metaprof
