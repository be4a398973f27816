#pragma once
// The bus between a device and its host: how fast it is, and what a step moves over it.

#include "core/units.h"
#include "meta/platform/hardware.h"
#include "meta/trace/trace.h"

namespace metaprof {

/// Bytes per second in one direction, of 16 lanes of the PCI Express that cards of this compute capability have
/// by their vendor's data sheets: version 3 up to 7.5 (Volta, Turing), 4 up to 8.9 (Ampere, Ada), 5 from 9.0
/// (Hopper, Blackwell). A lane moves 8, 16 and 32 GT/s, of which 128 of 130 bits are data. 0: a CPU has none.
double bus_bandwidth(const Hardware& hardware);

/// What the first step copies to and from the host in forward and backward: of tensors that are saved there.
/// Both ways together.
Bytes saved_over_bus(const Trace& trace);

}  // namespace metaprof
