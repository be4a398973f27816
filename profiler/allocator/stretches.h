#pragma once
// The requests of one step, cut so that steps of other inputs can follow it: an epoch is such stretches in a row, and each
// kind of batch is run once, however often it comes.

#include <optional>
#include <span>
#include <vector>

#include "meta/allocator/device_allocator.h"
#include "profiler/allocator/requests.h"

namespace metaprof {

/// What the work on one micro-batch asks for; that on a step's last one has the optimizer, too.
struct Stretch {
  /// `slot`: below `found` a tensor that the stretch before left, above it one that is made here. Of begin_part: the Phase.
  std::vector<Request> list = {};
  uint32_t found =
      0;  ///< tensors that are here at its begin and go later, in the order in which they were made
  uint32_t slots = 0;               ///< every slot is smaller
  std::vector<uint32_t> left = {};  ///< slots of what is here at its end and goes later, in that order
  std::vector<Request> batch = {};  ///< allocates the tensors of its batch
};

/// The stretches of a step. `inputs`: slots of the batch, which a loop over batches makes anew for each. The last step of
/// `requests` leaves what it found, but for tensors that it replaces by their like.
std::vector<Stretch> stretches(const Requests& requests, uint32_t step, std::span<const uint32_t> inputs);

/// Feeds an allocator with stretches in a row.
class StretchReplay {
 public:
  explicit StretchReplay(DeviceAllocator& allocator) : allocator_(allocator) {}

  /// What comes before the first step, with the first batch. False: memory ran out.
  bool set_up(const Requests& requests, std::span<const uint32_t> inputs);

  struct Failure {
    Phase phase = Phase::setup;
    Bytes requested, allocated, reserved;
  };
  /// `new_batch`: the batch is made first, and then the one before goes, as `for batch in loader` does. Nothing: memory did
  /// not run out. Errors: what the stretch found is not what the one before left.
  std::optional<Failure> play(const Stretch& stretch, bool new_batch);

 private:
  bool feed(const Request& request, std::vector<BlockNumber>& blocks);
  bool replace_batch(const Stretch& stretch);
  Failure failure(const Request& request) const;

  DeviceAllocator& allocator_;
  Phase phase_ = Phase::setup;
  std::vector<BlockNumber> carried_, batch_;
  Request failed_{};
};

}  // namespace metaprof
