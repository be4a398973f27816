#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "meta/allocator/alloc_conf.h"

namespace metaprof {

// How a device chooses the address of a new segment. Addresses decide which of two equal free blocks the
// caching allocator takes, and so what it splits and reserves.
enum class AddressOrder {
  // As real devices do: downwards from the top; segments of up to 2 MiB upwards within blocks of 32 MiB that
  // themselves come downwards; a freed address is not given again. With this rule public runs on an H100 are
  // equal in peak reserved memory, with ascending addresses many are not.
  downwards,
  // The lowest free address that fits.
  upwards,
};

// Addresses that a real driver chose, in the order in which it gave them. They depend on what else the process has mapped,
// so another run of the same program has others.
struct GivenAddresses {
  std::vector<std::uint64_t> segments;  // of DeviceMemory::allocate
  std::vector<std::uint64_t> reserved;  // of DeviceMemory::reserve_addresses
};

// A real device that holds the memory behind a DeviceMemory. Sizes are those of the caching allocator's segments: multiples
// of 2 MiB.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // cudaMalloc; nothing if the device is full.
  virtual std::optional<std::uint64_t> allocate(std::uint64_t bytes) = 0;
  virtual void free(std::uint64_t address, std::uint64_t bytes) = 0;

  // Address space without memory behind it, and memory in pages of `page` bytes that is mapped into it: cuMemAddressReserve,
  // cuMemCreate and cuMemMap. `map` is false, and nothing is mapped, if the device is full.
  virtual std::uint64_t reserve_addresses(std::uint64_t bytes) = 0;
  virtual void release_addresses(std::uint64_t address, std::uint64_t bytes) = 0;
  virtual bool map(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) = 0;
  virtual void unmap(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) = 0;

  // What the device still has.
  virtual std::uint64_t unused() const = 0;
};

struct DeviceMemoryOptions {
  std::uint64_t capacity = kUnlimited;  // bytes; at most DeviceMemory::kMostMemory count
  std::uint64_t used_by_others = 0;     // bytes that the allocator can never have (context, other processes)
  AddressOrder order = AddressOrder::downwards;
  std::uint64_t first_address = 0x7f00'0000'0000;  // segments lie in [first_address, end_address)
  std::uint64_t end_address = 0x8000'0000'0000;
  std::uint64_t virtual_address =
      0x2000'0000'0000;  // reserved address space (expandable segments) begins here
  std::shared_ptr<const GivenAddresses> given = {};  // taken while there are any; then `order` decides
  // Gives the addresses, and says when it is full, in place of the rules above. It must outlive the DeviceMemory and its
  // copies, of which one alone may then be used. Null: the device is simulated.
  MemorySource* source = nullptr;
};

// The memory of one device: which addresses it gives and when it is full. Nothing is stored.
class DeviceMemory {
 public:
  // Half of the addresses of a process; no device comes near it.
  static constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 46;

  explicit DeviceMemory(const DeviceMemoryOptions& options = {});

  // Address of `bytes` (at least 1) of memory, or nothing if the device is full.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  // `bytes` as they were asked for at `address`.
  void free(std::uint64_t address, std::uint64_t bytes);

  // Address space without memory behind it.
  std::uint64_t reserve_addresses(std::uint64_t bytes);
  void release_addresses(std::uint64_t address, std::uint64_t bytes);
  // Memory for reserved addresses, in pages of `page` bytes; false if the device is full.
  bool map(std::uint64_t address, std::uint64_t bytes, std::uint64_t page);
  void unmap(std::uint64_t address, std::uint64_t bytes, std::uint64_t page);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t unused() const { return source_ ? source_->unused() : capacity_ - used_; }

 private:
  std::uint64_t next_address(std::uint64_t size);
  std::uint64_t next_downwards(std::uint64_t size);
  std::uint64_t lowest_free(std::uint64_t size) const;

  MemorySource* source_;
  std::uint64_t capacity_;
  std::uint64_t used_;
  AddressOrder order_;
  std::uint64_t first_address_;
  std::uint64_t lowest_;          // everything below is untouched (downwards)
  std::uint64_t small_next_ = 0;  // next piece of the open block of 32 MiB; 0: none is open
  std::uint64_t virtual_next_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // address -> size (upwards)
  std::shared_ptr<const GivenAddresses> given_;
  std::size_t given_segments_ = 0, given_reserved_ = 0;  // that were taken
};

}  // namespace metaprof
