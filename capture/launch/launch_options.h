#pragma once
// What is run, on what, and how much of it is kept.

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.h"
#include "meta/platform/hardware.h"

namespace metaprof {

struct LaunchOptions {
  std::vector<std::string> program;  ///< and its arguments
  Hardware device;                   ///< that is emulated
  Bytes context;                     ///< of the emulated device: what its context and kernels take
  bool real = false;                 ///< on the machine's own GPU in place of an emulated one
  int gpus = 1;                      ///< of the emulated machine
  int world_size = 0;                ///< of a job of which some ranks are run; 0: the program's own
  std::vector<int> ranks;            ///< of that job; empty: rank 0
  bool different_ranks = false;      ///< and those that these send to or receive from, else the last one
  int64_t steps = 0;                 ///< after which it is ended; 0: it runs to its end
  int64_t detail_steps = 3;          ///< of which every request is kept
  double timeout = 0;                ///< seconds; 0: none
  std::string alloc_conf;            ///< PYTORCH_ALLOC_CONF
  std::string workspaces = "auto";   ///< of cuDNN's plans: asked of the installed cuDNN; "none": 0 bytes
  std::string clock =
      "at-once";  ///< when the emulated device's work is complete: "at-once", "expected", "late"
  std::vector<std::string> assumptions;  ///< "even", or FILE:LINE=ANSWER (docs/reference/run.md)
  std::string save;         ///< the file *.mp that the captured program is written to; empty: none
  bool costs = false;       ///< the program is captured for its FLOPs and time, too
  std::string fix;          ///< a change that the recorder makes (capture/launch/fixes.h); empty: none
  bool silent = false;      ///< what the program prints is thrown away
  bool own_output = false;  ///< standard output is the caller's alone: the program's goes to standard error
  bool events = false;      ///< the allocator's history is kept, with its addresses
  std::vector<std::string> environment;  ///< NAME=VALUE
};

}  // namespace metaprof
