#pragma once
// A communicator of NCCL.

#include <memory>
#include <string>

#include "capture/emulator/nccl/exchange.h"

namespace metaprof::emulator::nccl {

enum Result : int { done = 0, unhandled_cuda_error = 1, invalid_argument = 4 };

struct Communicator {
  int ranks = 0, rank = 0, device = 0;
  std::shared_ptr<Exchange> exchange;  ///< who waits for a value may outlive the communicator
  std::string name;                    ///< of the exchange
};

}  // namespace metaprof::emulator::nccl
