#include "meta/allocator/device_memory.h"

#include <algorithm>
#include <utility>

#include "meta/allocator/size_classes.h"

namespace metaprof {

namespace {

constexpr std::uint64_t kPage = 2 * kMiB;         // granularity of device memory and alignment of segments
constexpr std::uint64_t kSmallBlock = 32 * kMiB;  // address range from which segments of one page come

constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t step) { return value / step * step; }

// Requests of the caching allocator are at least 2 MiB; smaller ones are packed at 512 bytes.
std::uint64_t taken_size(std::uint64_t bytes) { return round_up(bytes, kMinBlockSize); }

}  // namespace

DeviceMemory::DeviceMemory(const DeviceMemoryOptions& options)
    : source_(options.source),
      capacity_(std::min(options.capacity, kMostMemory)),
      used_(std::min(options.used_by_others, capacity_)),
      order_(options.order),
      first_address_(options.first_address),
      lowest_(options.end_address),
      virtual_next_(options.virtual_address),
      given_(options.given) {}

std::optional<std::uint64_t> DeviceMemory::allocate(std::uint64_t bytes) {
  const std::uint64_t size = taken_size(bytes);
  if (source_) {
    const std::optional<std::uint64_t> address = source_->allocate(size);
    if (address) used_ += size;
    return address;
  }
  if (size > unused() || (order_ == AddressOrder::downwards && size + kSmallBlock > lowest_))
    return std::nullopt;
  const std::uint64_t address = next_address(size);
  if (order_ == AddressOrder::upwards) taken_[address] = size;
  used_ += size;
  return address;
}

void DeviceMemory::free(std::uint64_t address, std::uint64_t bytes) {
  used_ -= taken_size(bytes);
  if (source_) return source_->free(address, taken_size(bytes));
  if (order_ == AddressOrder::upwards) taken_.erase(address);
}

std::uint64_t DeviceMemory::reserve_addresses(std::uint64_t bytes) {
  if (source_) return source_->reserve_addresses(bytes);
  if (given_ && given_reserved_ < given_->reserved.size()) return given_->reserved[given_reserved_++];
  return std::exchange(virtual_next_, virtual_next_ + round_up(bytes, kPage));
}

void DeviceMemory::release_addresses(std::uint64_t address, std::uint64_t bytes) {
  if (source_) source_->release_addresses(address, bytes);
}

bool DeviceMemory::map(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) {
  if (source_ ? !source_->map(address, bytes, page) : bytes > unused()) return false;
  used_ += bytes;
  return true;
}

void DeviceMemory::unmap(std::uint64_t address, std::uint64_t bytes, std::uint64_t page) {
  used_ -= bytes;
  if (source_) source_->unmap(address, bytes, page);
}

std::uint64_t DeviceMemory::next_address(std::uint64_t size) {
  if (given_ && given_segments_ < given_->segments.size()) return given_->segments[given_segments_++];
  return order_ == AddressOrder::downwards ? next_downwards(size) : lowest_free(size);
}

std::uint64_t DeviceMemory::next_downwards(std::uint64_t size) {
  if (size > kPage) return lowest_ = round_down(lowest_ - size, kPage);
  if (small_next_ % kSmallBlock == 0) small_next_ = lowest_ = round_down(lowest_ - kSmallBlock, kSmallBlock);
  return std::exchange(small_next_, small_next_ + kPage);
}

std::uint64_t DeviceMemory::lowest_free(std::uint64_t size) const {
  std::uint64_t address = first_address_;
  for (const auto& [taken, length] : taken_) {
    if (address + size <= taken) break;
    address = round_up(taken + length, kPage);
  }
  return address;
}

}  // namespace metaprof
