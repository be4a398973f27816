#include <algorithm>
#include <bit>

#include "core/error.h"
#include "meta/allocator/caching_allocator.h"
#include "meta/allocator/size_classes.h"

// Pools of graph captures and of torch.cuda.MemPool.

namespace metaprof {

PoolIndex CachingAllocator::make_pool(bool small, std::optional<PoolId> owner) {
  PoolIndex index = static_cast<PoolIndex>(pools_.size());
  if (unused_pools_.empty()) {
    pools_.emplace_back();
  } else {
    index = unused_pools_.back();
    unused_pools_.pop_back();
  }
  pools_[index] = BlockPool{};
  pools_[index].small = small;
  pools_[index].owner = owner;
  return index;
}

// The innermost pool that was begun for the stream, else the default one.
PoolIndex CachingAllocator::pool_for(std::uint64_t size, StreamId stream) const {
  const bool small = size <= kSmallSize;
  for (auto it = captures_.rbegin(); it != captures_.rend(); ++it) {
    if (it->stream && *it->stream != stream) continue;
    const PrivatePool& pool = private_pools_.at(it->pool);
    return small ? pool.small : pool.large;
  }
  return small ? 0 : 1;
}

CachingAllocator::PrivatePool* CachingAllocator::owner_of(PoolIndex pool) {
  return pools_[pool].owner ? &private_pools_.at(*pools_[pool].owner) : nullptr;
}

const CachingAllocator::PrivatePool* CachingAllocator::owner_of(PoolIndex pool) const {
  return pools_[pool].owner ? &private_pools_.at(*pools_[pool].owner) : nullptr;
}

CachingAllocator::PrivatePool& CachingAllocator::private_pool(PoolId pool, const char* what) {
  const auto it = private_pools_.find(pool);
  if (it == private_pools_.end()) fail("{}: there is no memory pool {}.{}", what, pool.first, pool.second);
  return it->second;
}

void CachingAllocator::create_pool(PoolId pool) {
  if (pool.is_default()) fail("create_pool: 0.0 is the default memory pool, which always exists");
  if (const auto it = private_pools_.find(pool); it != private_pools_.end()) {
    if (it->second.uses == 0) {
      fail("create_pool: memory pool {}.{} was released and cannot be used again", pool.first, pool.second);
    }
    ++it->second.uses;
    return;
  }
  PrivatePool made;
  made.small = make_pool(/*small=*/true, pool);
  made.large = make_pool(/*small=*/false, pool);
  private_pools_.emplace(pool, made);
}

void CachingAllocator::begin_pool(PoolId pool, std::optional<StreamId> stream) {
  for (const Capture& capture : captures_) {
    if (capture.pool == pool)
      fail("begin_pool: memory pool {}.{} was already begun", pool.first, pool.second);
  }
  create_pool(pool);
  captures_.push_back({pool, stream});
}

void CachingAllocator::end_pool(PoolId pool) {
  const auto it = std::find_if(captures_.begin(), captures_.end(),
                               [&](const Capture& capture) { return capture.pool == pool; });
  if (it == captures_.end()) fail("end_pool: memory pool {}.{} was not begun", pool.first, pool.second);
  captures_.erase(it);
}

void CachingAllocator::release_pool(PoolId pool) {
  PrivatePool& released = private_pool(pool, "release_pool");
  if (released.uses == 0) fail("release_pool: memory pool {}.{} is in no use", pool.first, pool.second);
  if (--released.uses == 0) std::erase(fallback_pools_, pool);
}

std::uint32_t CachingAllocator::pool_uses(PoolId pool) const {
  const auto it = private_pools_.find(pool);
  return it == private_pools_.end() ? 0 : it->second.uses;
}

void CachingAllocator::use_on_out_of_memory(PoolId pool, bool use) {
  if (private_pool(pool, "use_on_out_of_memory").uses == 0) return;
  const auto it = std::find(fallback_pools_.begin(), fallback_pools_.end(), pool);
  if (!use && it != fallback_pools_.end()) fallback_pools_.erase(it);
  if (!use || it != fallback_pools_.end()) return;
  fallback_pools_.push_back(pool);
  while (2 * fallback_pools_.size() > fallback_slots_) fallback_slots_ = std::max(4u, 2 * fallback_slots_);
}

void CachingAllocator::never_split(PoolId pool) { private_pool(pool, "never_split").never_split = true; }

// In the order of the framework's table, an open hash table with Fibonacci hashing: by slot, then by time.
bool CachingAllocator::take_from_fallback_pool(Request& request) {
  if (fallback_pools_.empty() || pools_[request.pool].owner) return false;
  std::vector<PoolId> order = fallback_pools_;
  const auto slot = [&](PoolId pool) {
    const std::uint64_t number = pool.first != 0 ? pool.first : pool.second;
    return number * 11400714819323198485u >> (64 - std::countr_zero(fallback_slots_));
  };
  std::stable_sort(order.begin(), order.end(), [&](PoolId a, PoolId b) { return slot(a) < slot(b); });
  for (const PoolId id : order) {
    const PrivatePool& pool = private_pools_.at(id);
    Request attempt = request;
    attempt.pool = pools_[request.pool].small ? pool.small : pool.large;
    attempt.expandable = false;
    if (!find_free_block(attempt)) continue;
    request = attempt;
    return true;
  }
  return false;
}

std::uint64_t CachingAllocator::free_bytes_in_private_pools() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, pool] : private_pools_) {
    for (const PoolIndex index : {pool.small, pool.large}) {
      for (const BlockNumber block : pools_[index].free.blocks()) bytes += blocks_[block].size;
    }
  }
  return bytes;
}

}  // namespace metaprof
